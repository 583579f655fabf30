import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

export interface Target {
  readonly name: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

export interface Round {
  /** Milliseconds until each whole answer. */
  readonly latencies: number[];
  readonly seconds: number;
}

/** What a client of streams waits for, in milliseconds. */
export interface StreamRound {
  /** From the request to the first bytes of each answer. */
  readonly first: number[];
  /** From the vendor's write of each chunk to its arrival. */
  readonly chunks: number[];
}

/** Calls the target for so many streams, one after another. */
export async function loadStreams(target: Target, streams: number): Promise<StreamRound> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const round: StreamRound = { first: [], chunks: [] };
  for (let stream = 0; stream < streams; stream += 1) await readStream(target, agent, round);
  agent.destroy();
  return round;
}

async function readStream({ url, headers, body }: Target, agent: Agent, round: StreamRound): Promise<void> {
  const asked = JSON.stringify({ ...JSON.parse(body), stream: true });
  const begun = performance.now();
  const sent = request(url, { method: 'POST', agent, headers: { 'content-type': 'application/json', ...headers } });
  sent.end(asked);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`${url} answered ${response.statusCode}`);
  let isFirst = true;
  for await (const bytes of response as AsyncIterable<Buffer>) {
    const now = performance.now();
    if (isFirst) round.first.push(now - begun);
    isFirst = false;
    for (const [, sentAt] of bytes.toString().matchAll(/"sentAt":([\d.]+)/g)) {
      round.chunks.push(performance.timeOrigin + now - Number(sentAt));
    }
  }
}

/** Calls the target so many times over 16 connections. */
export async function loadCalls(target: Target, calls: number): Promise<void> {
  const connections = 16;
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  let left = calls;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      await call(target, agent);
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  agent.destroy();
}

/** Calls the target over so many connections, each one request after another, for that long. */
export async function load(target: Target, connections: number, milliseconds: number): Promise<Round> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const latencies: number[] = [];
  const begun = performance.now();
  const worker = async () => {
    while (performance.now() < begun + milliseconds) {
      const at = performance.now();
      await call(target, agent);
      latencies.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  agent.destroy();
  return { latencies, seconds: (performance.now() - begun) / 1_000 };
}

function call({ url, headers, body }: Target, agent: Agent): Promise<void> {
  const own = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', agent, headers: { ...own, ...headers } }, (response) => {
      text(response).then((answer) => {
        if (response.statusCode === 200 && answer.includes('who changed what')) resolve();
        else reject(new Error(`${url} answered ${response.statusCode}: ${answer.slice(0, 500)}`));
      }, reject);
    });
    sent.once('error', reject);
    sent.end(body);
  });
}
