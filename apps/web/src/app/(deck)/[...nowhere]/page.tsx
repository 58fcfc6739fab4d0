import { notFound } from "next/navigation";

/** Every other address, so that the frame with its ways out stays around the answer. */
export default function Nowhere(): never {
  notFound();
}
