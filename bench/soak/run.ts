import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { setRetention } from '../../src/history/retention/retention.ts';
import { startVendor } from '../../test/support/vendor/vendor-server.ts';
import { childrenOf, memoryOf } from '../processor-time.ts';
import { benchFolder, openBenchServer } from '../server.ts';
import { Counts, environmentOf, Supervised } from '../service.ts';
import { check } from './check.ts';
import { type Caller, chat, exportHistory, prepareTenant, read, record, write } from './clients.ts';

// Everything at once, at rates that leave the machine room: recorders, readers, writers, chats, exports and retention,
// while one process is killed each minute. At the end what was acknowledged is compared with what is there, and totals
// with plain counts.
const { values: settings } = parseArgs({
  options: { minutes: { type: 'string', default: '30' }, killEvery: { type: 'string', default: '60' } },
});
const historyAway = 'Problem encountered while trying to retrieve changelog history.';
const say = (line: string) => process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);

const server = await openBenchServer(`${benchFolder}-soak`);
const database = await server.create();
const { db } = database;
const vendor = await startVendor();
const [outcomes, messages] = [new Counts(), new Counts()];
const environment = environmentOf(database.url, {
  LOG_LEVEL: 'warn',
  OPENAI_BASE_URL: vendor.baseUrl,
  ANNALS_SELF_HOSTED_ALLOW: '127.0.0.0/8',
});
const onLog = (message: string) => messages.add(message);
const service = new Supervised(['serve'], { ...environment, ANNALS_WORKERS: '2' }, onLog);
const recorder = new Supervised(['recorder'], environment, onLog);
const urls = { service: await service.ready, recorder: await recorder.ready };
const over = new AbortController();
const memory = new Map<string, number[]>();
const callers: Caller[] = [];
const loads: Promise<void>[] = [killInTurn(), sampleMemory()];
// The changes of the second tenant lie over 60 days, of which retention drops some.
for (const days of [1, 60]) {
  const tenant = `soak${randomBytes(3).toString('hex')}`;
  const caller = await prepareTenant(db, tenant, { ...urls, outcomes, over: over.signal });
  callers.push(caller);
  loads.push(record(caller, 'one', days), record(caller, 'two', days), read(caller), read(caller));
  loads.push(write(caller), chat(caller), exportHistory(caller));
  if (days > 1) loads.push(retain(tenant));
}
say(`started: ${urls.service}, ${urls.recorder}`);
await sleep(Number(settings.minutes) * 60_000);
over.abort();
await Promise.all(loads);
say('the load is over; checking');
const lines: string[] = [];
for (const [place, caller] of callers.entries()) lines.push(...(await check(database, caller, place === 0)));
await Promise.all([recorder.stop(), service.stop()]);
const unexpected = /: (?:500|502|504|4\d\d|no answer|without)/;
const failures = outcomes.lines.filter((line) => unexpected.test(line) && !line.includes(historyAway));
const memories = [...memory].map(([name, sizes]) => {
  const late = sizes.slice(Math.floor(sizes.length / 3));
  return `memory of ${name}, last two thirds: ${Math.min(...late).toFixed(0)} to ${Math.max(...late).toFixed(0)} MiB`;
});
const report = { Outcomes: outcomes.lines, Log: messages.lines, Checks: [...lines, ...memories], Failures: failures };
for (const [title, of] of Object.entries(report)) process.stdout.write(`\n${title}:\n${of.join('\n')}\n`);
if (failures.length > 0 || lines.some((line) => line.startsWith('FAILED'))) process.exitCode = 1;
await vendor.close();
await database.drop();
await server.release();

/** Keeps fewer days of the tenant each time. */
async function retain(tenant: string): Promise<void> {
  for (let days = 55; !over.signal.aborted && days > 1; days -= 5) {
    await setRetention(db, tenant, days, Date.now()).catch(() => outcomes.add('retention: database away'));
    await pause(240_000);
  }
}

async function killInTurn(): Promise<void> {
  const victims = ['a worker', 'the recorder', 'a worker', 'the database'] as const;
  for (let kill = 0; ; kill++) {
    await pause(Number(settings.killEvery) * 1_000);
    if (over.signal.aborted) return;
    const victim = victims[kill % victims.length];
    say(`kills ${victim}`);
    outcomes.add(`killed: ${victim}`);
    if (victim === 'the recorder') recorder.kill();
    else if (victim === 'the database') await server.kill();
    // The youngest: the eldest lives to the end, and shows whether its memory grows.
    else process.kill(childrenOf(service.pid).at(-1) ?? 0, 'SIGKILL');
  }
}

/** Of the primary process and of the eldest worker. */
async function sampleMemory(): Promise<void> {
  for (; !over.signal.aborted; await pause(15_000)) {
    for (const [name, pid] of Object.entries({
      primary: service.pid,
      'eldest worker': childrenOf(service.pid)[0] ?? 0,
    })) {
      memory.set(name, [...(memory.get(name) ?? []), memoryOf(pid).now]);
    }
  }
}

async function pause(milliseconds: number): Promise<void> {
  await sleep(milliseconds, undefined, { signal: over.signal }).catch(() => {});
}
