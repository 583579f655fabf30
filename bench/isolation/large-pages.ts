import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { attack } from './attacks/huge-pages.ts';
import { MemorySampler } from './memory-sampler.ts';
import { openWorld, type Service } from './world.ts';

// What eight clients cost that each read one page of 400 MB slowly: memory of the process beside its idle memory.
// Usage: node bench/isolation/large-pages.ts [--seconds 60] [--clients 8]
const { values: settings } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, clients: { type: 'string', default: '8' } },
});
const tenant = 'reader';
const world = await openWorld();
try {
  const service = await world.startService();
  const client = await world.makeTenant(tenant);
  await attack.fill?.(world.db, tenant);
  const token = await service.tokenOf(client);
  // One page read quickly, so that what is compared has its code compiled and its caches filled.
  const warm = await readPage(service, token, Number.POSITIVE_INFINITY);
  await sleep(3_000);
  const idle = await service.memory();
  const sampler = new MemorySampler(service);
  // Each client reads for so long that all are under way together.
  const rate = Math.ceil(warm / Number(settings.seconds));
  const lengths = await Promise.all(
    Array.from({ length: Number(settings.clients) }, () => readPage(service, token, rate)),
  );
  const most = await sampler.end();
  const whole = lengths.every((length) => length === warm);
  console.log(
    `| pages of ${(warm / 1e6).toFixed(0)} MB, ${lengths.length} clients, ${(rate / 1e6).toFixed(1)} MB/s each | ` +
      `idle ${idle.toFixed(0)} MiB | most ${most.toFixed(0)} MiB | over idle ${(most - idle).toFixed(0)} MiB | whole: ${whole} |`,
  );
  await service.stop();
} finally {
  await world.close();
}

/** Reads one page from a bare socket, so that what is not taken stays in the service; answers the bytes of the answer. */
async function readPage({ baseUrl }: Service, token: string, bytesPerSecond: number): Promise<number> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(
    `GET /schema/${tenant}/custom-entities/HUGE/instances?pageSize=400 HTTP/1.1\r\nHost: bench\r\n` +
      `Authorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
  );
  const begun = performance.now();
  let length = 0;
  for await (const chunk of socket) {
    length += chunk.length;
    const ahead = length / bytesPerSecond - (performance.now() - begun) / 1000;
    if (ahead > 0) await sleep(ahead * 1000);
  }
  return length;
}
