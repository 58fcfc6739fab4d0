/** What is read of each language's source: entities with their whole names, what they call and inherit, what a file imports. */
import { describe, expect, it } from "vitest";
import { memoryFile } from "../../../testing/memory-tree.ts";
import { languageOf, languages } from "./registry.ts";

const read = async (path: string, text: string) => {
  const { source } = await memoryFile(path, text);
  const entity = (name: string) => {
    const found = source.entities.find((one) => one.name === name);
    if (found === undefined) throw new Error(`no ${name} in ${source.entities.map((one) => one.name).join(", ")}`);
    return found;
  };
  return { source, entity, names: source.entities.map(({ kind, name }) => `${kind} ${name}`) };
};

describe("Python", () => {
  const text = `import os, numpy as np
from ..a.b import (c as d,
    e)
from . import sibling

@decorate(1)
# about it
class Shape(Base, abc.ABC, metaclass=Meta):
    """A shape.

    More.
    """
    sides: int = count()

    @property
    def area(self):
        'Its area.'
        def inner():
            return helper()
        return self.width * inner()

async def main(x,
               y=1):
    await Shape().area

main(1)
`;
  it("nests names, takes decorators in, reads documentation", async () => {
    const { names, entity, source } = await read("pkg/shape.py", text);
    expect(names).toEqual(["class Shape", "function Shape.area", "function Shape.area.inner", "function main"]);
    const shape = entity("Shape");
    expect(shape).toMatchObject({ startLine: 6, doc: "A shape.", decorators: ["@decorate(1)"], parent: -1 });
    expect(shape.bases).toEqual(["Base", "abc.ABC"]);
    expect(shape.calls).toEqual(["decorate", "count"]);
    expect(entity("Shape.area")).toMatchObject({
      startLine: 15,
      endLine: 20,
      doc: "Its area.",
      decorators: ["@property"],
    });
    expect(entity("Shape.area").calls).toEqual(["inner"]);
    expect(entity("Shape.area.inner").calls).toEqual(["helper"]);
    expect(entity("main").signature).toBe("async def main(x, y=1)");
    expect(source.calls).toEqual(["main"]);
  });
  it("reads imports as they bind names", async () => {
    const { source } = await read("pkg/shape.py", text);
    expect(source.imports).toEqual([
      { module: "os", alias: "os", names: [] },
      { module: "numpy", alias: "np", names: [] },
      {
        module: "..a.b",
        alias: "",
        names: [
          ["c", "d"],
          ["e", "e"],
        ],
      },
      { module: ".", alias: "", names: [["sibling", "sibling"]] },
    ]);
  });
  it("gives what it can of a file that does not parse", async () => {
    const { names } = await read(
      "x.py",
      "def good():\n    pass\n\ndef bad(:\n  !!\n\nclass Also:\n    def fine(self): pass\n",
    );
    expect(names).toContain("function good");
  });
});

it("TypeScript: functions in constants, methods, heritage", async () => {
  const { names, entity, source } = await read(
    "src/a.ts",
    `import x, { b as c, type D } from "./b.ts";
import * as all from "../all";
/** Adds.
 * More. */
export const add = async (n: number): Promise<number> => c(n);
export abstract class Box<T> extends Base<T> implements Shape, D {
  #secret = 1;
  get size(): number { return this.#measure(); }
  handle = (e: Event) => { all.log(e); };
  constructor() { super(); new Thing(); }
}
export interface Shape extends Other { area(): number }
enum Colour { Red }
function plain() {}
`,
  );
  expect(names).toEqual([
    "function add",
    "class Box",
    "function Box.size",
    "function Box.handle",
    "function Box.constructor",
    "class Shape",
    "class Colour",
    "function plain",
  ]);
  expect(entity("add")).toMatchObject({ doc: "Adds.", startLine: 5, calls: ["c"] });
  expect(entity("Box").bases).toEqual(["Base", "Shape", "D"]);
  expect(entity("Shape").bases).toEqual(["Other"]);
  expect(entity("Box.handle").calls).toEqual(["all.log"]);
  expect(entity("Box.constructor").calls).toContain("Thing");
  expect(source.imports.map(({ module, alias, names: brought }) => [module, alias, brought])).toEqual([
    [
      "./b.ts",
      "",
      [
        ["b", "c"],
        ["D", "D"],
        ["default", "x"],
      ],
    ],
    ["../all", "all", []],
  ]);
});

it("TSX and JavaScript: components and classes", async () => {
  expect((await read("a.tsx", "export function App() { return <div>{render()}</div>; }")).names).toEqual([
    "function App",
  ]);
  const { names, entity } = await read(
    "a.mjs",
    "class A extends B { go() { this.x(); } field = () => 1 }\nconst f = function () {};",
  );
  expect(names).toEqual(["class A", "function A.go", "function A.field", "function f"]);
  expect(entity("A").bases).toEqual(["B"]);
});

it("Go: methods belong to their receiver", async () => {
  const { names, entity, source } = await read(
    "server/serve.go",
    `package server

import (
	"fmt"
	web "example.org/x/net/http"
)

// Server serves.
type Server struct {
	Base
	*web.Handler
	name string
}

// Serve begins.
func (s *Server) Serve(a int) error {
	return fmt.Errorf("x %d", s.count())
}

func New[T any](t T) *Server { return &Server{} }
`,
  );
  expect(names).toEqual(["class Server", "function Server.Serve", "function New"]);
  expect(entity("Server")).toMatchObject({ doc: "Server serves.", bases: ["Base", "web.Handler"] });
  expect(entity("Server.Serve")).toMatchObject({ doc: "Serve begins.", calls: ["fmt.Errorf", "s.count"] });
  expect(source.imports.map(({ module, alias }) => [module, alias])).toEqual([
    ["fmt", "fmt"],
    ["example.org/x/net/http", "web"],
  ]);
});

it("Rust: impl blocks and modules name what is in them", async () => {
  const { names, entity, source } = await read(
    "src/lib.rs",
    `use crate::a::{b, c as d};
/// A point.
#[derive(Debug)]
pub struct Point { x: i32 }
impl<T> fmt::Display for Point<T> {
    fn fmt(&self) -> String { format!("{}", self.x()) }
}
mod inner {
    pub trait Shape: Base { fn area(&self) -> f64; }
    pub fn make() { Point::new(); }
}
`,
  );
  expect(names).toEqual([
    "class Point",
    "function Point.fmt",
    "class inner.Shape",
    "function inner.Shape.area",
    "function inner.make",
  ]);
  expect(entity("Point").doc).toBe("A point.");
  expect(entity("inner.Shape").bases).toEqual(["Base"]);
  expect(entity("inner.make").calls).toEqual(["Point::new"]);
  expect(source.imports.map(({ module, names: brought }) => [module, brought])).toEqual([
    ["crate::a", [["b", "b"]]],
    ["crate::a", [["c", "d"]]],
  ]);
});

it("Java: types, constructors, heritage", async () => {
  const { names, entity, source } = await read(
    "src/main/java/org/x/Shop.java",
    `package org.x;
import java.util.List;
import static org.x.Prices.*;
/** A shop. */
public class Shop extends Store implements Open, Closeable {
    public Shop() { init(); }
    /** Sells. */
    int sell(Item item) { return new Sale(item).run(); }
    interface Listener extends Other { void on(); }
    enum Kind { A }
    record Pair(int a) {}
}
`,
  );
  expect(names).toEqual([
    "class Shop",
    "function Shop.Shop",
    "function Shop.sell",
    "class Shop.Listener",
    "function Shop.Listener.on",
    "class Shop.Kind",
    "class Shop.Pair",
  ]);
  expect(entity("Shop")).toMatchObject({ doc: "A shop.", bases: ["Store", "Open", "Closeable"] });
  expect(entity("Shop.sell").calls).toEqual(["Sale", "run"]);
  expect(source.imports.map(({ module }) => module)).toEqual(["java.util.List", "org.x.Prices"]);
});

it("every extension has one language, and other files none", () => {
  const extensions = languages.flatMap((language) => language.extensions);
  expect(new Set(extensions).size).toBe(extensions.length);
  expect(languageOf("a/b.PY")?.name).toBe("Python");
  for (const path of ["README.md", "py", "a.py/b", ".py/x.txt"]) expect(languageOf(path)).toBeUndefined();
});
