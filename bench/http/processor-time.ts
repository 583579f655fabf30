import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** For a server: tells its address, then its processor time in microseconds as often as it is asked. */
export function tellProcessorTime(address: string): void {
  process.send?.(address);
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send?.(user + system);
  });
}

/** The processor time of a server in microseconds. */
export async function processorTimeOf(server: ChildProcess): Promise<number> {
  server.send('how much?');
  const [microseconds] = await once(server, 'message');
  return Number(microseconds);
}
