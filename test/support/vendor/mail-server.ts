import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { SMTPServer } from 'smtp-server';
import { ownPort } from '../server/own-port.ts';

export interface ReceivedMail {
  from: string;
  to: string[];
  /** Header and body, as they came. */
  message: string;
}

/** A real SMTP server on loopback, with its failures. */
export interface MailServer {
  url: string;
  /** What it took under that Message-ID. */
  received(messageId: string): ReceivedMail[];
  /** Everything it took. */
  all(): ReceivedMail[];
  /** Refuses that mail so many times, as busy servers do. */
  refuse(messageId: string, times: number): void;
  /** Refuses the recipient for good, with this answer; undefined: takes it again. */
  refuseRecipient(address: string, answer: string | undefined): void;
  /** Does the work when the mail has been taken, before it says yes. */
  onceTaken(messageId: string, work: () => Promise<void>): void;
  /** As if it were down: its port is closed. */
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

export async function startMailServer(): Promise<MailServer> {
  const taken: { id: string; mail: ReceivedMail }[] = [];
  const refusals = new Map<string, number>();
  const unknown = new Map<string, string | undefined>();
  const hooks = new Map<string, () => Promise<void>>();
  const port = await ownPort();
  let server = make();

  function make(): SMTPServer {
    const made = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      logger: false,
      onRcptTo({ address }, _session, done) {
        const answer = unknown.get(address);
        done(answer === undefined ? null : Object.assign(new Error(answer), { responseCode: 550 }));
      },
      async onData(stream, session, done) {
        const message = await text(stream);
        const id = /^Message-ID: *(\S+)/im.exec(message)?.[1] ?? '';
        const left = refusals.get(id) ?? 0;
        if (left > 0) {
          refusals.set(id, left - 1);
          done(Object.assign(new Error('busy, come again'), { responseCode: 451 }));
          return;
        }
        const { mailFrom, rcptTo } = session.envelope;
        const from = mailFrom === false ? '' : mailFrom.address;
        taken.push({ id, mail: { from, to: rcptTo.map(({ address }) => address), message } });
        await hooks.get(id)?.();
        hooks.delete(id);
        done();
      },
    });
    made.on('error', () => {});
    return made;
  }

  async function listen(): Promise<void> {
    server.listen(port, '127.0.0.1');
    await once(server.server, 'listening');
  }

  async function stop(): Promise<void> {
    await new Promise<void>((resolve) => server.close(resolve));
  }

  await listen();
  return {
    url: `smtp://127.0.0.1:${port}`,
    received: (messageId) => taken.filter(({ id }) => id === messageId).map(({ mail }) => mail),
    all: () => taken.map(({ mail }) => mail),
    refuse: (messageId, times) => void refusals.set(messageId, times),
    refuseRecipient: (address, answer) => void unknown.set(address, answer),
    onceTaken: (messageId, work) => void hooks.set(messageId, work),
    stop,
    async start() {
      server = make();
      await listen();
    },
    close: stop,
  };
}
