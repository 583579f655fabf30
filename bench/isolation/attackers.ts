import { setPriority } from 'node:os';
import { startVendor } from '../../test/support/vendor/vendor-server.ts';
import type { Attack, Attacker } from './attacks/attack.ts';

// The attackers, in a process of their own with a lower priority: the cost of making requests is not measured.
const [baseUrl = '', name = '', ...tenants] = process.argv.slice(2);
setPriority(3);
const { attack }: { attack: Attack } = await import(`./attacks/${name}.ts`);
const over = new AbortController();
const counts: Record<string, number> = {};

const attackers = await Promise.all(
  tenants.map(async (pair): Promise<Attacker> => {
    const [tenant = '', token = ''] = pair.split('=');
    const open = (path: string, options: RequestInit) =>
      fetch(`${baseUrl}${path}`, { ...options, signal: over.signal });
    return {
      tenant,
      vendor: await startVendor(),
      callOpen: open,
      call: (path, { method = 'GET', body, contentType = 'application/json' } = {}) => {
        const headers = {
          authorization: `Bearer ${token}`,
          ...(body === undefined ? {} : { 'content-type': contentType }),
        };
        return open(path, { method, headers, ...(body === undefined ? {} : { body }) });
      },
      count(outcome, times = 1) {
        counts[outcome] = (counts[outcome] ?? 0) + times;
      },
    };
  }),
);

for (const attacker of attackers) await attack.prepare?.(attacker);
process.on('message', async (message) => {
  if (message === 'end') {
    over.abort();
    process.send?.(counts);
    return;
  }
  for (const attacker of attackers) void attackUntilOver(attacker);
});
process.send?.('ready');

/** A connection that breaks does not end an attack. */
async function attackUntilOver(attacker: Attacker): Promise<void> {
  while (!over.signal.aborted) {
    await attack.run(attacker, over.signal).catch((error: unknown) => {
      if (!over.signal.aborted) attacker.count(error instanceof Error ? error.message : String(error));
    });
  }
}
