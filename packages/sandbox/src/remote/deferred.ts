/** A promise that is settled from outside. Nobody needs to wait for it: a rejection that none has seen is no crash. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
}

export function deferred<T>(): Deferred<T> {
  let settle: Pick<Deferred<T>, "resolve" | "reject"> = { resolve: () => undefined, reject: () => undefined };
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  promise.catch(() => undefined);
  return { promise, resolve: (value) => settle.resolve(value), reject: (error) => settle.reject(error) };
}
