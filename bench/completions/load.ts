import { Agent, request } from 'node:http';
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
