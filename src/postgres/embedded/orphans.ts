import { readdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { servesCluster } from './postmaster-file.ts';

/**
 * Ends the workers that a killed server left behind. They end by themselves once they notice, but a worker in a long query notices
 * late, and no new server may start beside it. On systems other than Linux Annals can only wait.
 */
export async function endOrphans(cluster: string): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGTERM', 'SIGKILL'] as const) {
    for (const pid of await processesOf(cluster)) {
      try {
        process.kill(pid, signal);
      } catch {
        // It has ended by itself.
      }
    }
    for (let waited = 0; waited < 2_000; waited += 50) {
      await sleep(50);
      if (process.platform === 'linux' && (await processesOf(cluster)).length === 0) return;
    }
  }
}

async function processesOf(cluster: string): Promise<number[]> {
  if (process.platform !== 'linux') return [];
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 1 && pid !== process.pid);
  const serving = await Promise.all(pids.map((pid) => servesCluster(pid, cluster)));
  return pids.filter((_, index) => serving[index] === true);
}
