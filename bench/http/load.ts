import { connect, type Socket } from 'node:net';

/** What a load has done. */
export interface Load {
  requests: number;
  seconds: number;
}

/**
 * Sends one GET again and again on so many connections, each of which waits for its answer before it asks again. Throws where
 * an answer is not 200. It only finds the end of an answer, so it takes little processor time itself.
 */
export async function load(
  url: URL,
  options: { token: string; connections: number; requests?: number; seconds?: number },
): Promise<Load> {
  const { connections, requests = Number.POSITIVE_INFINITY, seconds = Number.POSITIVE_INFINITY } = options;
  const head =
    `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer ${options.token}\r\n` +
    'Accept: application/json\r\nUser-Agent: annals-bench\r\n\r\n';
  const began = performance.now();
  const until = began + seconds * 1000;
  let sent = 0;
  let answered = 0;

  async function drive(socket: Socket): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const next = () => {
      if (sent >= requests || performance.now() >= until) {
        resolve();
        return;
      }
      sent += 1;
      socket.write(head);
    };
    const answers = new Answers(() => {
      answered += 1;
      next();
    });
    socket.on('data', (chunk: Buffer) => {
      try {
        answers.take(chunk);
      } catch (error) {
        reject(error);
      }
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server has closed a connection')));
    next();
    await promise;
  }

  const sockets = Array.from({ length: connections }, () => connect(Number(url.port), url.hostname).setNoDelay());
  try {
    await Promise.all(sockets.map(drive));
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  return { requests: answered, seconds: (performance.now() - began) / 1000 };
}

/** Finds where each answer of a connection ends. */
class Answers {
  readonly #onAnswer: () => void;
  #head = '';
  #left = 0;

  constructor(onAnswer: () => void) {
    this.#onAnswer = onAnswer;
  }

  take(chunk: Buffer): void {
    if (this.#left > 0) {
      this.#left -= chunk.length;
    } else {
      this.#head += chunk.toString('latin1');
      const end = this.#head.indexOf('\r\n\r\n');
      if (end === -1) return;
      if (!this.#head.startsWith('HTTP/1.1 200 ')) throw new Error(`not 200: ${this.#head}`);
      const length = /\r\ncontent-length: (\d+)\r\n/i.exec(this.#head)?.[1];
      if (length === undefined) throw new Error(`an answer without a length: ${this.#head}`);
      this.#left = end + 4 + Number(length) - this.#head.length;
      this.#head = '';
    }
    if (this.#left === 0) this.#onAnswer();
    else if (this.#left < 0) throw new Error('more came than was asked for');
  }
}
