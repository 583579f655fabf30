import { onTestFinished } from 'vitest';

export interface FeedEvent {
  readonly event: string;
  readonly id: string;
  readonly data: string;
}

/** The events of a feed, read one by one as a client of server-sent events reads them. */
export interface OpenFeed {
  readonly response: Response;
  /** The next event; undefined at the end of the stream. */
  next(): Promise<FeedEvent | undefined>;
  /** The next one of this name. */
  nextOf(event: string): Promise<FeedEvent>;
  /** All events until one of this name, which is included, or until the end. */
  until(event: string): Promise<FeedEvent[]>;
  close(): void;
}

/** Opens a feed. To be called in a test, which ends it. */
export async function openFeed(
  url: string,
  { token, lastEventId }: { token: string; lastEventId?: string | undefined },
): Promise<OpenFeed> {
  const controller = new AbortController();
  onTestFinished(() => controller.abort());
  const response = await fetch(url, {
    headers: {
      accept: 'text/event-stream',
      authorization: `Bearer ${token}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
    signal: controller.signal,
  });
  const events = eventsOf(response);
  const next = async () => (await events.next()).value ?? undefined;
  const until = async (name: string) => {
    const read: FeedEvent[] = [];
    for (;;) {
      const event = await next();
      if (event === undefined) return read;
      read.push(event);
      if (event.event === name) return read;
    }
  };
  return {
    response,
    next,
    until,
    async nextOf(name) {
      const last = (await until(name)).at(-1);
      if (last?.event !== name) throw new Error(`the stream ended without ${name}`);
      return last;
    },
    close: () => controller.abort(),
  };
}

async function* eventsOf({ body }: Response): AsyncGenerator<FeedEvent> {
  let text = '';
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const blocks = (text + chunk).split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      );
      const event = fields.get('event');
      if (event !== undefined) yield { event, id: fields.get('id') ?? '', data: fields.get('data') ?? '' };
    }
  }
}
