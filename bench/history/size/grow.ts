import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { endedChildrenMilliseconds, postmasterOf, serverMilliseconds, walPosition } from './measures.ts';
import { linesOfPeriod } from './template-lines.ts';

const launcher = join(import.meta.dirname, '../../../bin/annals.js');

/** What the import of one period has cost. */
export interface Growth {
  recorded: number;
  lineBytes: number;
  /** Milliseconds of processor time of `annals import`, its start included. */
  service: number;
  /** Milliseconds of processor time of all processes of the server. */
  database: number;
  walBytes: number;
  seconds: number;
}

export interface Period {
  template: string;
  number: number;
  /** Milliseconds since 1970. */
  start: number;
}

/** Records a period by `annals import`, in a process of its own as an operator runs it, and folds along with it. */
export async function importPeriod(
  { url, pool, tenant }: { url: string; pool: pg.Pool; tenant: string },
  { template, number, start }: Period,
): Promise<Growth> {
  const postmaster = await postmasterOf(pool);
  const before = {
    database: serverMilliseconds(postmaster),
    service: endedChildrenMilliseconds(),
    wal: await walPosition(pool),
  };
  const begun = performance.now();
  const command = spawn(process.execPath, [launcher, 'import', '--tenant', tenant, '-'], {
    env: { ...process.env, DATABASE_URL: url, ANNALS_SECRET_KEY: randomBytes(32).toString('base64') },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let lineBytes = 0;
  const counted = async function* (lines: AsyncIterable<string>) {
    for await (const chunk of lines) {
      const bytes = Buffer.from(chunk);
      lineBytes += bytes.length;
      yield bytes;
    }
  };
  const sent = pipeline(Readable.from(counted(linesOfPeriod(template, number, start))), command.stdin);
  const [answer, [code]] = await Promise.all([text(command.stdout), once(command, 'exit'), sent]);
  const { recorded, rejected }: { recorded: number; rejected: number } = JSON.parse(answer);
  if (code !== 0 || rejected > 0) throw new Error(`the import ended with ${code} and ${answer.trim()}`);
  return {
    recorded,
    lineBytes,
    service: endedChildrenMilliseconds() - before.service,
    database: serverMilliseconds(postmaster) - before.database,
    walBytes: (await walPosition(pool)) - before.wal,
    seconds: (performance.now() - begun) / 1000,
  };
}
