import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface SplunkEvent {
  time: number;
  source: string;
  sourcetype?: string;
  index?: string;
  event: unknown;
}

/**
 * A server of the tests that does what Splunk publishes of its HTTP Event Collector and of indexer acknowledgement. It
 * is not Splunk: no other behaviour of Splunk is tested.
 */
export interface SplunkServer {
  url: string;
  token: string;
  /** Accepted events in order, duplicates included. */
  accepted: SplunkEvent[];
  /** The bodies of accepted requests. */
  bodies: string[];
  /** Requests for acknowledgements. */
  polls: number;
  /** Whether the token has acknowledgement on. Then events are acknowledged by `index` alone. */
  acknowledges: boolean;
  /** Everything that was accepted is in the index: the next polls say so, each once. */
  index(): void;
  /** The server has forgotten what it had accepted, as after a crash. */
  forget(): void;
  /** Answers the next requests with these. */
  refuse(...answers: { status: number; code: number; text: string }[]): void;
  close(): Promise<void>;
}

const indexes = ['main', 'audit'];

export async function startSplunkServer(): Promise<SplunkServer> {
  const refusals: { status: number; code: number; text: string }[] = [];
  /** Of each channel its acknowledgement ids, and whether their events are indexed. */
  const channels = new Map<string, Map<number, boolean>>();
  let nextAckId = 0;

  const splunk: SplunkServer = {
    url: '',
    token: 'b1946ac9-2bc3-4ff1-9d4f-9f21c1a4e0aa',
    accepted: [],
    bodies: [],
    polls: 0,
    acknowledges: false,
    index() {
      for (const acks of channels.values()) for (const id of acks.keys()) acks.set(id, true);
    },
    forget: () => channels.clear(),
    refuse: (...answers) => void refusals.push(...answers),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };

  function answer(request: IncomingMessage, body: string): { status: number; body: object } {
    const said = (status: number, code: number, words: string) => ({ status, body: { text: words, code } });
    if (request.method !== 'POST') return said(405, 404, 'Method not allowed');
    const { authorization, 'x-splunk-request-channel': channel } = request.headers;
    if (authorization === undefined) return said(401, 2, 'Token is required');
    if (authorization !== `Splunk ${splunk.token}`) return said(403, 4, 'Invalid token');
    const refusal = refusals.shift();
    if (refusal !== undefined) return said(refusal.status, refusal.code, refusal.text);
    const isGuid = typeof channel === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(channel);
    if (splunk.acknowledges && channel === undefined) return said(400, 10, 'Data channel is missing');
    if (channel !== undefined && !isGuid) return said(400, 11, 'Invalid data channel');
    const acks = channels.get(String(channel)) ?? new Map<number, boolean>();
    channels.set(String(channel), acks);
    if (request.url === '/services/collector/ack') {
      splunk.polls += 1;
      if (!splunk.acknowledges) return said(400, 14, 'ACK is disabled');
      const { acks: ackIds } = JSON.parse(body) as { acks: number[] };
      const statuses = ackIds.map((id) => [String(id), acks.get(id) === true] as const);
      // A status that was reported as true is removed.
      for (const [id, isIndexed] of statuses) if (isIndexed) acks.delete(Number(id));
      return { status: 200, body: { acks: Object.fromEntries(statuses) } };
    }
    if (request.url !== '/services/collector/event') return said(404, 404, 'The requested URL was not found');
    if (body === '') return said(400, 5, 'No data');
    const events = eventsIn(body);
    if (events === undefined) return said(400, 6, 'Invalid data format');
    if (events.some(({ event }) => event === undefined)) return said(400, 12, 'Event field is required');
    if (events.some(({ index }) => index !== undefined && !indexes.includes(index)))
      return said(400, 7, 'Incorrect index');
    splunk.accepted.push(...events);
    splunk.bodies.push(body);
    if (!splunk.acknowledges) return said(200, 0, 'Success');
    const ackId = nextAckId++;
    acks.set(ackId, false);
    return { status: 200, body: { text: 'Success', code: 0, ackId } };
  }

  const server = createServer((request, response) => {
    text(request)
      .then((body) => {
        const { status, body: said } = answer(request, body);
        response.writeHead(status, { 'content-type': 'application/json; charset=UTF-8' });
        response.end(JSON.stringify(said));
      })
      .catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  splunk.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return splunk;
}

/** Events one after another, each a JSON object on a line. Undefined where that is not so. */
function eventsIn(body: string): SplunkEvent[] | undefined {
  try {
    const lines = body.split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as SplunkEvent);
  } catch {
    return undefined;
  }
}
