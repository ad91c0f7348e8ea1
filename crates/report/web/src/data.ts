// Reading the analysis that html.rs has put into the page: gzip, then base64, in a script element
// that the browser does not execute.

import type { Analysis } from "./analysis";

/** Id of the element with the data. */
export const DATA_ID = "analysis";

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const data = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) data[index] = binary.charCodeAt(index);
  return data;
}

/** The analysis in this page. Fails with a message for the reader. */
export async function readAnalysis(): Promise<Analysis> {
  const text = document.getElementById(DATA_ID)?.textContent?.trim();
  if (!text) throw new Error("this page holds no data");
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser is too old to unpack the data (it needs DecompressionStream, 2023)");
  }
  const stream = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as Analysis;
}
