import { Agent, request } from 'node:http';

export interface Target {
  name: string;
  url: string;
  headers: Record<string, string>;
  body: string;
}

/** Latencies in milliseconds, of a streamed answer those of its first text, and the time of the whole measurement. */
export interface Round {
  latencies: number[];
  seconds: number;
}

/** Asks the target over so many connections, each one request after another, for that long. */
export async function load(target: Target, connections: number, milliseconds: number): Promise<Round> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const latencies: number[] = [];
  const begun = performance.now();
  const until = begun + milliseconds;
  const worker = async () => {
    while (performance.now() < until) {
      const at = performance.now();
      latencies.push((await ask(target, agent)) - at);
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  const seconds = (performance.now() - begun) / 1_000;
  agent.destroy();
  return { latencies, seconds };
}

/** When the answer was there, or the first text of a streamed one. */
function ask({ url, headers, body }: Target, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      {
        method: 'POST',
        agent,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers },
      },
      (response) => {
        let text = '';
        let first: number | undefined;
        const streams = response.headers['content-type']?.startsWith('text/event-stream') === true;
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
          if (streams && text.includes('"content":"It ')) first ??= performance.now();
        });
        response.once('error', reject);
        response.once('end', () => {
          const isWhole = streams ? text.includes('[DONE]') && first !== undefined : text.includes('who changed what');
          if (response.statusCode === 200 && isWhole) resolve(first ?? performance.now());
          else reject(new Error(`${url} answered ${response.statusCode}: ${text.slice(0, 500)}`));
        });
      },
    );
    sent.once('error', reject);
    sent.end(body);
  });
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
