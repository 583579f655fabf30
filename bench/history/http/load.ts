import { createRequire } from 'node:module';
import { join } from 'node:path';

// Makes the load, in a process of its own: autocannon, of the folder that the benchmark installs it in. What it sums up
// itself knows whole milliseconds only, so the times of the single answers are taken.
type Autocannon = (options: {
  url: string;
  connections: number;
  duration: number;
  headers: Record<string, string>;
}) => Promise<{
  errors: number;
  non2xx: number;
  duration: number;
}> & {
  on(event: 'response', heard: (client: unknown, status: number, bytes: number, milliseconds: number) => void): void;
};

const [folder = '', url = '', connections = '', seconds = '', token = ''] = process.argv.slice(2);
const autocannon: Autocannon = createRequire(join(folder, 'package.json'))('autocannon');
const milliseconds: number[] = [];
const running = autocannon({
  url,
  connections: Number(connections),
  duration: Number(seconds),
  headers: { authorization: `Bearer ${token}` },
});
running.on('response', (_client, _status, _bytes, time) => milliseconds.push(time));
const { errors, non2xx, duration } = await running;
if (errors > 0 || non2xx > 0) throw new Error(`${errors} errors and ${non2xx} answers other than 2xx`);
milliseconds.sort((one, other) => one - other);
const at = (share: number) => milliseconds[Math.floor(milliseconds.length * share)];
process.stdout.write(JSON.stringify({ perSecond: milliseconds.length / duration, p50: at(0.5), p99: at(0.99) }));
