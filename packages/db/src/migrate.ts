/** Brings the database up to the newest migration. @throws InputError for a database that is not ours */
export function migrate(_url: string, _options: { readonly folder?: string } = {}): Promise<{ applied: string[] }> {
  return Promise.reject(new Error("under construction"));
}
