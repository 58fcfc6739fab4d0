/** What the model is answered, over a small tree: what is found, in which order, and what it is told to ask next. */
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { memoryFile, memoryTree } from "../../testing/memory-tree.ts";
import { answerSearch } from "./answer-search.ts";
import { codeTerms, stem } from "./code-terms.ts";
import { ownTexts } from "./file-terms.ts";
import { pathMatcher } from "./path-pattern.ts";
import { literalWords } from "./pattern-search.ts";
import { RepositoryIndex } from "./repository-index.ts";
import { RepositoryView } from "./repository-view.ts";
import { SearchRequest } from "./search-request.ts";
import { searchText } from "./text-search.ts";

const tree = {
  "shop/__init__.py": "",
  "shop/cart.py": `"""The cart."""
from shop.money import Money, add as plus
from . import stock
import json


class Cart(Base):
    """Holds what is to be bought."""

    def __init__(self, items):
        self.items = items

    def total_price(self):
        """Sum of all prices, discounts taken off."""
        total = Money(0)
        for item in self.items:
            total = plus(total, item.price)
        return self.rounded(total)

    def checkout(self):
        stock.reserve(self.items)
        return self.total_price()


def empty_cart():
    return Cart([])
`,
  "shop/base.py": "class Base:\n    def rounded(self, value):\n        return round_half_even(value)\n",
  "shop/money.py": `class Money:
    def __init__(self, cents):
        self.cents = cents


def add(a, b):
    return Money(a.cents + b.cents)


def round_half_even(value):
    return value
`,
  "shop/stock.py": "import shop.cart\n\ndef reserve(items):\n    return json_dump(items)\n",
  "shop/json.py": "def dump(value):\n    return value\n",
  "tests/test_cart.py":
    "from shop.cart import Cart\n\ndef test_total_price():\n    assert Cart([]).total_price().cents == 0\n",
  "docs/conf.py": `${"x = 1\n".repeat(300)}class Long:\n${"    def method_%(self):\n        pass\n".repeat(3)}`,
  "web/app.ts": 'import { price } from "./price";\nexport function show(): string { return price(1); }\n',
  "web/price.ts": "export const price = (n: number) => n * 2;\n",
};

let view: RepositoryView;
beforeAll(async () => {
  view = await memoryTree(tree);
});
const ask = (request: object, over = view) =>
  answerSearch({ view: over, root: "/testbed", isStopped: () => false }, SearchRequest.parse(request));
const term = (text: string, more: object = {}) => ask({ search_terms: [text], ...more });

describe("names", () => {
  it("an exact id shows the whole code with its lines, however the path is written", async () => {
    const answer = await term("shop/cart.py:Cart.checkout");
    expect(answer).toContain("Found function `shop/cart.py:Cart.checkout` (lines 20-22).");
    expect(answer).toContain("    21\t        stock.reserve(self.items)");
    expect(answer).toMatch(/Hint: Search `shop\/cart\.py:Cart\.checkout` with relation "invoked_by"/);
    for (const same of ["/testbed/shop/cart.py:Cart.checkout", "./shop/cart.py:Cart.checkout"]) {
      expect(await term(same)).toContain("    21\t");
    }
  });
  it("a name of one shows a preview; letters, prefixes and qualified forms lead to it", async () => {
    for (const form of [
      "total_price",
      "def total_price",
      "Cart.total_price",
      "TOTAL_PRICE",
      "total_price()",
      "shop.cart.Cart.total_price",
    ]) {
      const answer = await term(form);
      expect(answer).toContain("Found function `shop/cart.py:Cart.total_price` (lines 13-18).");
      expect(answer).toContain('"""Sum of all prices, discounts taken off."""');
      expect(answer).toContain("to see the full function code");
    }
  });
  it("more than three of a name are listed, tests last", async () => {
    const many = await memoryTree({
      "tests/test_a.py": "def run(): pass\n",
      "z.py": "def run(): pass\n",
      "b.py": "def run(): pass\n",
      "c.py": "class C:\n    def run(self): pass\n",
    });
    const answer = await term("run", {}).then(() => ask({ search_terms: ["run"] }, many));
    expect(answer).toContain("Found 4 of that name.");
    expect([...answer.matchAll(/- function `([^`]+)`/g)].map(([, id]) => id)).toEqual([
      "b.py:run",
      "c.py:C.run",
      "z.py:run",
      "tests/test_a.py:run",
    ]);
  });
  it("tests are found, too", async () => {
    expect(await term("test_total_price")).toContain("Found function `tests/test_cart.py:test_total_price`");
  });
  it("files and folders are found by path, long ones by their parts", async () => {
    expect(await term("shop/money.py")).toContain("     1\tclass Money:");
    expect(await term("money.py")).toContain("Found file `shop/money.py`");
    expect(await term("shop/")).toMatch(/Found directory `shop` with 6 source files\.[\s\S]*- shop\/base\.py/);
    const long = await term("docs/conf.py");
    expect(long).toContain("lines are too many to show; its parts are:");
    expect(long).toMatch(/class Long {2}\(lines 301-\d+\)/);
  });
  it("a misspelt name finds what looks like it", async () => {
    for (const wrong of ["totl_price", "price_total", "TotalPrise"]) {
      expect(await term(wrong)).toMatch(/Found function `shop\/cart\.py:Cart\.total_price`[\s\S]*Nothing is called/);
    }
  });
  it("a text is found in any letters: lines of one file, counts of several", async () => {
    expect(await term("HOLDS WHAT")).toMatch(/Found 1 matching line in `shop\/cart\.py`: 8\n/);
    const several = await term(".cents");
    expect(several).toContain("Found the text in 2 files");
    expect(several.indexOf("shop/money.py")).toBeLessThan(several.indexOf("tests/test_cart.py"));
    const everywhere = await memoryTree(
      Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`f${i}.py`, "needle = 1\n"])),
    );
    expect(await ask({ search_terms: ["needle ="] }, everywhere)).toContain("in more than 20 files");
  });
  it("words rank what they describe", async () => {
    const answer = await term("sum up the discounted prices of the cart");
    expect(answer).toMatch(/ranked by its words:\n- function `shop\/cart\.py:Cart\.total_price`/);
  });
  it("nothing at all is said so", async () => {
    expect(await term("zzqqxx yyvvww")).toMatch(/Nothing was found for `zzqqxx yyvvww`/);
  });
});

describe("lines and patterns", () => {
  it("line_nums show what the lines are in, each once", async () => {
    const answer = await ask({ line_nums: [14, 15, 3, 99], file_path_or_pattern: "shop/cart.py" });
    expect(answer.match(/Found function `shop\/cart\.py:Cart\.total_price`/g)).toHaveLength(1);
    expect(answer).toContain("    15\t        total = Money(0)");
    expect(answer).toContain("Line 3 of `shop/cart.py` is in no function or class.");
    expect(answer).toContain("there is no line 99");
    expect(await ask({ line_nums: [1], file_path_or_pattern: "shop/*.py" })).toContain("needs one file");
  });
  it("a pattern matches by structure, in each language that can read it", async () => {
    expect(await ask({ pattern: "Money($X)" })).toMatch(
      /2 places match[\s\S]*`shop\/cart\.py`\n {2}15: total = Money\(0\)[\s\S]*`shop\/money\.py`\n {2}7: /,
    );
    expect(await ask({ pattern: "price($N)", file_path_or_pattern: "web/**" })).toContain(
      "`web/app.ts`\n  2: export function show",
    );
    expect(await ask({ pattern: "nowhere($$$)" })).toContain("No code matches the pattern");
    expect(literalWords("isinstance($X, QuerySet).$M($$$ARGS)")).toEqual(["isinstance", "QuerySet"]);
  });
  it("file_path_or_pattern narrows; one that matches nothing is said, and everything is searched", async () => {
    expect(await term("price", { file_path_or_pattern: "**/*.ts" })).not.toContain("cart.py");
    expect(await term("total_price", { file_path_or_pattern: "nope/**" })).toMatch(
      /^No source files match `nope\/\*\*`\. All files are searched instead\.\n\nFound function/,
    );
  });
});

describe("relations", () => {
  const related = (name: string, relation: string, depth = 1) => term(name, { relation, depth });
  it("contain, import, call and inherit, and the same from the other side", async () => {
    expect(await related("shop/cart.py", "contains", 2)).toMatch(
      /- class `shop\/cart\.py:Cart`[\s\S]*- function `shop\/cart\.py:Cart\.checkout`/,
    );
    const imports = await related("shop/cart.py", "imports");
    expect(imports).toContain("`shop/money.py`");
    expect(imports).toContain("`shop/stock.py`");
    // `import json` is the standard library's, not the package's own.
    expect(imports).not.toContain("shop/json.py");
    expect(await related("shop/cart.py", "imported_by")).toMatch(/shop\/stock\.py[\s\S]*tests\/test_cart\.py/);
    const calls = await related("Cart.total_price", "invokes");
    for (const id of ["shop/money.py:Money", "shop/money.py:add", "shop/base.py:Base.rounded"])
      expect(calls).toContain(id);
    expect(await related("reserve", "invoked_by")).toContain("`shop/cart.py:Cart.checkout`");
    expect(await related("round_half_even", "invoked_by", 3)).toMatch(
      /Base\.rounded[\s\S]*Cart\.total_price[\s\S]*Cart\.checkout/,
    );
    expect(await related("Cart", "inherits")).toContain("`shop/base.py:Base`");
    expect(await related("Base", "inherited_by")).toContain("`shop/cart.py:Cart`");
    expect(await related("web/app.ts", "imports")).toContain("`web/price.ts`");
    expect(await related("show", "invokes")).toContain("`web/price.ts:price`");
  });
  it("end at cycles and at names that nothing has", async () => {
    const loop = await memoryTree({ "a.py": "def f():\n    g()\n\ndef g():\n    f()\n" });
    expect(await ask({ search_terms: ["f"], relation: "invokes", depth: 3 }, loop)).toContain("(see above)");
    expect(await related("nosuchname", "invokes")).toContain("nothing is related to it");
    expect(await related("round_half_even", "invokes")).toContain("none that could be told");
  });
});

describe("changes", () => {
  it("a view with changes answers as one built anew, and leaves its base alone", async () => {
    const fork = new RepositoryView(view.base);
    fork.put(await memoryFile("shop/cart.py", tree["shop/cart.py"].replace("def checkout", "def pay_now")));
    fork.put(await memoryFile("shop/added.py", "def brand_new_thing(): return pay_now()\n"));
    fork.remove("shop/stock.py");
    const { "shop/stock.py": _gone, ...left } = tree;
    const anew = await memoryTree({
      ...left,
      "shop/cart.py": tree["shop/cart.py"].replace("def checkout", "def pay_now"),
      "shop/added.py": "def brand_new_thing(): return pay_now()\n",
    });
    for (const request of [
      { search_terms: ["pay_now"] },
      { search_terms: ["checkout"] },
      { search_terms: ["reserve"] },
      { search_terms: ["brand_new_thin"] },
      { search_terms: ["pay_now"], relation: "invoked_by" },
      { search_terms: ["shop/cart.py"], relation: "imports" },
      { pattern: "pay_now()" },
    ]) {
      expect(await ask(request, fork)).toBe(await ask(request, anew));
    }
    expect(searchText(fork, "brand new thing", { limit: 1 })[0]?.file.source.path).toBe("shop/added.py");
    expect(await term("checkout")).toContain("Found function `shop/cart.py:Cart.checkout`");
  });
  it("a file that is put back is the base's again", async () => {
    const fork = new RepositoryView(view.base);
    const own = view.base.files.get("shop/cart.py");
    if (own === undefined) throw new Error("no cart");
    fork.remove("shop/cart.py");
    expect(fork.file("shop/cart.py")).toBeUndefined();
    fork.put(own);
    expect(fork.changes).toBe(0);
    expect(fork.files()).toHaveLength(Object.keys(tree).length);
  });
});

describe("parts", () => {
  it("own texts are the whole file, each character once", async () => {
    const pieces = fc.constantFrom(
      "def f():\n    x = 1\n",
      "class C:\n    def m(self):\n        def n(): pass\n    y = 2\n",
      "z = 3\n",
      "\n",
    );
    await fc.assert(
      fc.asyncProperty(fc.array(pieces, { maxLength: 6 }), async (parts) => {
        const text = parts.join("");
        const { source } = await memoryFile("a.py", text);
        const sorted = (value: string) => [...value].sort().join("");
        expect(sorted(ownTexts(source).join(""))).toBe(sorted(text));
      }),
    );
  });
  it("terms are the same for all forms of an identifier", () => {
    for (const form of ["getUserName", "get_user_name", "GetUserNames", "GET_USER_NAME"]) {
      expect(codeTerms(form, { whole: false })).toEqual(["get", "user", "nam"]);
    }
    expect(codeTerms("HTTPResponse404", { whole: false })).toEqual(["http", "respons", "404"]);
    expect([stem("parsing"), stem("parsed"), stem("parses")]).toEqual([stem("parse"), stem("parse"), stem("parse")]);
    expect(codeTerms("\u0000 \ud800 💥")).toEqual([]);
  });
  it("patterns of paths never throw, and match what they say", () => {
    const matches = (pattern: string, path: string) => pathMatcher(pattern, "/repo")(path);
    expect(matches("**/*.py", "a.py")).toBe(true);
    expect(matches("**/*.py", "a/b/c.py")).toBe(true);
    expect(matches("*.py", "a/b.py")).toBe(true);
    expect(matches("a/*.py", "a/b/c.py")).toBe(false);
    expect(matches("a/**/c.py", "a/c.py")).toBe(true);
    expect(matches("/repo/a", "a/b.py")).toBe(true);
    expect(matches('"a/b.py"', "a/b.py")).toBe(true);
    expect(matches("{a,b}/[!x]?.py", "b/yz.py")).toBe(true);
    expect(matches("**", "any/thing.py")).toBe(true);
    expect(matches("b*.py", "a/b.py")).toBe(true);
    expect(matches("**/b/**", "a/b/c/d.py")).toBe(true);
    expect(matches("**x*", "a/b.py")).toBe(false);
    expect(matches("[^ab]?.py", "ca.py")).toBe(true);
    expect(matches("{a,}b.py", "b.py")).toBe(true);
    expect(matches("[z-a]*.py", "b.py")).toBe(false);
    expect(matches("[z-a]*.py", "[z-a]*.py")).toBe(true);
    expect(matches("?.py", "💥.py")).toBe(true);
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."*?[]{}!,^-\\/.$()a+".split("")) }), (pattern) => {
        expect(typeof matches(pattern, "a/b.py")).toBe("boolean");
      }),
    );
  });
  it("no pattern of a path makes others wait", () => {
    const path = `${"a/".repeat(40)}${"a".repeat(200)}.py`;
    for (const pattern of [
      "*a".repeat(200),
      "**a".repeat(150),
      "**/a*/".repeat(80),
      "{a,aa}".repeat(80),
      "?*".repeat(200),
    ]) {
      const startedAt = performance.now();
      expect(pathMatcher(`${pattern}b`, "/repo")(path)).toBe(false);
      expect(performance.now() - startedAt).toBeLessThan(500);
    }
  });
  it("an index of nothing answers", async () => {
    const nothing = new RepositoryView(new RepositoryIndex([]));
    expect(await ask({ search_terms: ["x_y"] }, nothing)).toContain("Nothing was found");
    expect(await ask({ pattern: "f($X)" }, nothing)).toContain("No code matches");
  });
});
