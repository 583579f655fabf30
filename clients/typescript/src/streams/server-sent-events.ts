import { linesOf } from './lines.ts';

export interface ServerSentEvent {
  readonly event: string;
  readonly data: string;
  /** The id of this event or of the last one that had any; undefined before. */
  readonly id: string | undefined;
}

/** The server-sent events of a stream. Comments are left out, and so is an event that is cut off. */
export async function* serverSentEvents(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  let event = 'message';
  let data: string[] = [];
  let id: string | undefined;
  for await (const line of linesOf(body)) {
    if (line === '') {
      if (data.length > 0) yield { event, data: data.join('\n'), id };
      event = 'message';
      data = [];
      continue;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') event = value;
    else if (field === 'data') data.push(value);
    else if (field === 'id') id = value;
  }
}
