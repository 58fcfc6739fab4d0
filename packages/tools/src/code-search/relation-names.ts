/** Ways in which parts of a tree are related; those that end in `_by` are the same from the other side. */
export const relationNames = [
  "contains",
  "imports",
  "invokes",
  "inherits",
  "imported_by",
  "invoked_by",
  "inherited_by",
] as const;
export type RelationName = (typeof relationNames)[number];
