// Reading the analysis, or the atlas, that html.rs has put into the page: gzip, then base64, in a script element
// that the browser does not execute.

import type { Analysis, Atlas } from "./analysis";

/** Id of the element with the data of a report. */
export const DATA_ID = "analysis";
/** Id of the element with the data of an atlas. */
const ATLAS_ID = "atlas";

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const data = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) data[index] = binary.charCodeAt(index);
  return data;
}

/** Whether this page is an atlas. */
export function isAtlas(): boolean {
  return document.getElementById(ATLAS_ID) !== null;
}

/** The analysis in this page. Fails with a message for the reader. */
export function readAnalysis(): Promise<Analysis> {
  return read(DATA_ID);
}

/** The atlas in this page. Fails with a message for the reader. */
export function readAtlas(): Promise<Atlas> {
  return read(ATLAS_ID);
}

async function read<T>(id: string): Promise<T> {
  const text = document.getElementById(id)?.textContent?.trim();
  if (!text) throw new Error("this page holds no data");
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser is too old to unpack the data (it needs DecompressionStream, 2023)");
  }
  const stream = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as T;
}
