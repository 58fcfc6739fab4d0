/** A drawn SVG as a PNG at twice its size, with the computed colours written into it and a title line above. */
const inlined = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "stroke-opacity"];

function withStyles(source: SVGSVGElement): SVGSVGElement {
  const copy = source.cloneNode(true);
  if (!(copy instanceof SVGSVGElement)) return source;
  const from = source.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((node, index) => {
    const original = from[index];
    if (!original || !(node instanceof SVGElement)) return;
    const style = getComputedStyle(original);
    for (const name of inlined) node.style.setProperty(name, style.getPropertyValue(name));
    if (node instanceof SVGTextElement || node instanceof SVGTSpanElement) {
      node.style.font = `11px ${style.fontFamily}`;
    }
  });
  return copy;
}

const load = (url: string): Promise<HTMLImageElement> =>
  new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => resolve(image);
    image.onerror = () => reject(new Error("the browser could not draw the chart as an image"));
    image.src = url;
  });

/** @param layers drawn over one another, all of one size. */
export async function chartPng(title: string, layers: readonly SVGSVGElement[]): Promise<Blob> {
  const [first] = layers;
  if (!first) throw new Error("there is no chart to export");
  const width = first.clientWidth;
  const height = first.clientHeight;
  const head = 28;
  const canvas = document.createElement("canvas");
  canvas.width = width * 2;
  canvas.height = (height + head) * 2;
  const context = canvas.getContext("2d");
  if (!context) throw new Error("the browser gave no canvas");
  const root = getComputedStyle(document.documentElement);
  context.scale(2, 2);
  context.fillStyle = root.getPropertyValue("--g0");
  context.fillRect(0, 0, width, height + head);
  context.fillStyle = root.getPropertyValue("--g9");
  context.font = "600 13px sans-serif";
  context.fillText(title, 8, 18);
  for (const layer of layers) {
    const copy = withStyles(layer);
    copy.setAttribute("width", String(width));
    copy.setAttribute("height", String(height));
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    const text = new XMLSerializer().serializeToString(copy);
    context.drawImage(
      await load(`data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`),
      0,
      head,
      width,
      height,
    );
  }
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the browser gave no image")))),
  );
}
