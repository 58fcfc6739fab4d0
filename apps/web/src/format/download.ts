/** Hands a file to the browser under a name free of path characters. */
export function download(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replace(/[^\p{L}\p{N}._ -]+/gu, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export const downloadText = (name: string, type: string, text: string): void =>
  download(name, new Blob([text], { type: `${type};charset=utf-8` }));
