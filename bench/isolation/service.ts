import { setInterval } from 'node:timers';
import { main } from '../../src/main.ts';

// The service as `annals serve` runs it, with a probe: how long the event loop was held at a stretch, on the main
// thread's processor clock. The probe's timer runs once in each turn of the loop in which it is due, so what the thread
// computed between two of its calls is one turn's work and at most what fits between two timers.
const interval = 5;
let maxTurn = 0;
let before = cpuMilliseconds();

setInterval(() => {
  const now = cpuMilliseconds();
  maxTurn = Math.max(maxTurn, now - before - interval);
  before = now;
}, interval).unref();

process.on('message', () => {
  process.send?.({ maxTurn });
  maxTurn = 0;
});
process.channel?.unref();

await main(['serve'], process.env);

function cpuMilliseconds(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
