import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { startScript } from './script.ts';

/** A process of its own that uses the embedded database of a data folder. */
export interface Member {
  url: string;
  /** Its notices to the operator. */
  notices: string[];
  leave(): Promise<void>;
  /** As `kill -9` does. */
  kill(): Promise<void>;
}

/** Starts a process that opens the database, and waits until it has; rejects with its complaint where it cannot. */
export async function startMember(dataDir: string): Promise<Member> {
  const child = startScript('member-process.ts', [dataDir], 'pipe');
  const notices: string[] = [];
  if (child.stderr !== null) createInterface({ input: child.stderr }).on('line', (line) => notices.push(line));
  const url = await firstLine(child);
  if (url === undefined) throw new Error(notices.join('\n'));
  return {
    url,
    notices,
    async leave() {
      child.stdin?.end();
      await ended(child);
      if (child.exitCode !== 0) throw new Error(`it left with ${child.exitCode}: ${notices.join('\n')}`);
    },
    async kill() {
      child.kill('SIGKILL');
      await ended(child);
    },
  };
}

async function firstLine(child: ChildProcess): Promise<string | undefined> {
  if (child.stdout === null) return undefined;
  for await (const line of createInterface({ input: child.stdout })) return line;
  await ended(child);
  return undefined;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}
