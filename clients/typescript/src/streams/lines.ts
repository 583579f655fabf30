/** The lines of a stream of UTF-8, without their ends (LF or CRLF). Leaving the loop cancels the stream. */
export async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  // The begin of a line whose end has not come yet. Each piece is searched once, however long the line.
  let begun: string[] = [];
  let ended = false;
  try {
    while (!ended) {
      const { value, done } = await reader.read();
      ended = done;
      const text = done ? decoder.decode() : decoder.decode(value, { stream: true });
      let start = 0;
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
        yield withoutReturn([...begun, text.slice(start, end)].join(''));
        begun = [];
        start = end + 1;
      }
      if (start < text.length) begun.push(text.slice(start));
    }
    if (begun.length > 0) yield withoutReturn(begun.join(''));
  } finally {
    // The loop was left, or the stream is broken: nobody reads the rest.
    if (!ended) await reader.cancel().catch(() => {});
  }
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}
