import { setInterval } from 'node:timers';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

// A probe for a forked process: how long the event loop was blocked at a stretch, on the main thread's processor clock.
// Other work of the machine does not count. The timer runs once in each turn of the loop in which it is due, so what
// the thread computed between two of its calls is one turn's work and at most what fits between two timers. Each
// message of the parent is answered with the longest turn since the one before it, in milliseconds; `memory` with the
// bytes of the heap and beside it after a collection.
const interval = 5;
let maxTurn = 0;
let before = cpuMilliseconds();

setInterval(() => {
  const now = cpuMilliseconds();
  maxTurn = Math.max(maxTurn, now - before - interval);
  before = now;
}, interval).unref();

process.on('message', (message) => {
  if (message === 'memory') {
    process.send?.({ memory: memoryAfterCollection() });
    return;
  }
  process.send?.({ maxTurn });
  maxTurn = 0;
});
process.channel?.unref();

function cpuMilliseconds(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

function memoryAfterCollection(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // What the first collection frees may hold memory beside the heap.
  for (let time = 0; time < 3; time += 1) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
