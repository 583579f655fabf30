import { setInterval } from 'node:timers';
import { main } from '../../../src/main.ts';

// `annals recorder` with a probe, to be forked: how long the event loop was held at a stretch, on the main thread's processor clock. Other
// work of the machine does not count. The timer runs once in each turn of the loop in which it is due.
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

await main(['recorder'], process.env);

function cpuMilliseconds(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
