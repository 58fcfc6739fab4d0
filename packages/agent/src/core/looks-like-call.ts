/** Does a text without readable calls hold the marks of some call format? The run's dialect may be the wrong one. */
const marks = [
  /<tool_call>/,
  /<function=/,
  /<\|python_tag\|>/,
  /\[TOOL_CALLS\]/,
  /(?<![\p{L}\p{N}_)\]])\[\s*[\p{L}_][\p{L}\p{N}_.-]*\s*\(/u,
];

export const looksLikeCall = (text: string): boolean => marks.some((mark) => mark.test(text));
