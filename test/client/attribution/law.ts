import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Context, runWithContext, setContext } from '@annals/client/context';
import { attribute } from '@annals/client/pg';
import fc from 'fast-check';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import Cursor from 'pg-cursor';
import { expect } from 'vitest';
import { trials } from '../../support/oracle/trials.ts';
import { outcomeOf, type Recorded, type Shop } from './shop.ts';

/**
 * How a step is sent, and whether it is attributed inside and outside of a transaction. A query with `rows` is missing:
 * after an error pg sends no Sync for it, and hangs.
 */
const forms = {
  simple: 'both',
  extended: 'both',
  named: 'both',
  with: 'both',
  update: 'both',
  duplicate: 'both',
  fails: 'both',
  timeout: 'both',
  merge: 'both',
  copy: 'inside',
  cursor: 'inside',
  several: 'inside',
  begins: 'inside',
  late: 'neither',
  call: 'neither',
  do: 'neither',
  function: 'neither',
  begin: 'neither',
  commit: 'neither',
  rollback: 'neither',
  chain: 'neither',
  savepoint: 'neither',
  back: 'neither',
  release: 'neither',
  select: 'neither',
  syntax: 'neither',
  empty: 'neither',
} as const;

type Form = keyof typeof forms;

interface Step {
  readonly form: Form;
  /** Which of the connection's contexts; 0: none. */
  readonly context: number;
  readonly hasCallback: boolean;
  /** Whether the next step is called before this one has ended. */
  readonly isHasty: boolean;
}

/** Programs for some connections at once. */
function programs(count: number, without: readonly Form[] = []): fc.Arbitrary<Step[][]> {
  const arbitraries = (Object.keys(forms) as Form[])
    .filter((name) => !without.includes(name))
    .map((name) => ({ weight: weights[name] ?? 20, arbitrary: fc.constant(name) }));
  const form = fc.oneof(...arbitraries);
  const step = fc.record({ form, context: fc.nat(3), hasCallback: fc.boolean(), isHasty: fc.boolean() });
  const steps = fc.array(step, { minLength: 10, maxLength: 40, size: 'max' });
  return fc.array(steps, { minLength: count, maxLength: count });
}

/** Many writes in transactions that commit; few errors, since all that follows one is lost. A timeout takes long. */
const weights: Partial<Record<Form, number>> = {
  ...{ begin: 90, commit: 70, simple: 80, extended: 80, savepoint: 40, back: 25 },
  ...{ duplicate: 10, fails: 6, syntax: 6, release: 5, rollback: 8, late: 8, timeout: 1 },
};

interface Ran {
  readonly step: Step;
  /** The note of its rows. */
  readonly tag: string;
  readonly who: Context | null;
  outcome: unknown;
}

/** Runs a program. Ids and notes are those of the connection's number. */
async function runProgram(client: pg.ClientBase, connection: number, program: readonly Step[]): Promise<Ran[]> {
  const ran: Ran[] = [];
  const notices: string[] = [];
  const keep = ({ message }: { message: string | undefined }) => void notices.push(message ?? '');
  client.on('notice', keep as never);
  let running: Promise<void>[] = [];
  let id = connection * 1000;
  let last = id;
  for (const [place, step] of program.entries()) {
    id += 2;
    const tag = `${connection}-${place}`;
    const who = step.context === 0 ? null : contextOf(connection, step.context);
    const one: Ran = { step, tag, who, outcome: undefined };
    ran.push(one);
    const call = () => send(client, step, id, last, tag);
    const running1 = who === null ? outcomeOf(call) : outcomeOf(() => inContext(connection, step.context, call));
    running.push(
      running1.then((outcome) => {
        one.outcome = outcome;
      }),
    );
    if (!step.isHasty || ['cursor', 'copy'].includes(step.form)) {
      await Promise.all(running);
      running = [];
    }
    last = id;
  }
  await Promise.all(running);
  ran.push({
    step: { form: 'rollback', context: 0, hasCallback: false, isHasty: false },
    tag: '',
    who: null,
    outcome: notices.slice(),
  });
  await client.query('rollback');
  client.off('notice', keep as never);
  return ran;
}

function contextOf(connection: number, context: number): Context {
  const actor = `Person ${connection}-${context}`;
  return context === 3 ? { actor, context: { reason: 'set later' } } : { actor };
}

function inContext<T>(connection: number, context: number, call: () => T): T {
  return runWithContext({ actor: `Person ${connection}-${context}` }, () => {
    if (context === 3) setContext({ context: { reason: 'set later' } });
    return call();
  });
}

async function send(
  client: pg.ClientBase,
  { form, hasCallback }: Step,
  id: number,
  last: number,
  tag: string,
): Promise<unknown> {
  const row = `(${id}, '${tag}')`;
  const insert = `insert into items values ${row}`;
  const ask = (text: string, values: unknown[] = []): Promise<unknown> => {
    if (!hasCallback) return values.length > 0 ? client.query(text, values) : client.query(text);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    client.query(text, values, (error, result) => (error ? reject(error) : resolve(result)));
    return promise;
  };
  const texts: Partial<Record<Form, string>> = {
    simple: `${insert};`,
    with: `/* ; */ with a as (${insert} returning id) select id, ';' as sign from a`,
    update: `update items set note = '${tag}' where id = ${last} returning id`,
    duplicate: `insert into items values (${id}, '${tag}'), (${id}, 'again')`,
    fails: `insert into items select ${id} + n, '${tag}' from generate_series(0, 1) n where 1 / (1 - n) > 0`,
    // Within a transaction alone.
    timeout: `insert into items select ${id}, '${tag}' from pg_sleep(case current_setting('statement_timeout') when '0' then 0 else 60 end)`,
    merge: `merge into items i using (values ${row}) v(id, note) on i.id = v.id when not matched then insert values (v.id, v.note)`,
    several: `${insert}; insert into items values (${id + 1}, '${tag}')`,
    begins: `${insert}; commit; begin; insert into items values (${id + 1}, '${tag} later')`,
    late: `select 1; ${insert}`,
    call: `call call_item(${id}, '${tag}')`,
    do: `do $$ begin raise notice 'did ${tag}'; insert into items values ${row}; end $$`,
    function: `select write_item(${id}, '${tag}')`,
    begin: 'begin',
    commit: 'commit',
    rollback: 'rollback',
    chain: 'commit and chain',
    savepoint: 'savepoint a',
    back: 'rollback to a',
    release: 'release a',
    select: 'select count(*) from items where id = -1 for update'.replace('count(*)', 'id'),
    syntax: 'insert into items valuse (1)',
    empty: '-- nothing',
  };
  if (form === 'extended') return await ask('insert into items values ($1, $2) returning note', [id, tag]);
  if (form === 'named')
    return await client.query({ name: 'insert', text: 'insert into items values ($1, $2)', values: [id, tag] });
  if (form === 'copy') {
    await pipeline(Readable.from([`${id}\t${tag}\n`]), client.query(copyFrom('copy items from stdin')));
    return {};
  }
  if (form === 'cursor') {
    const cursor = client.query(new Cursor(`${insert} returning id`));
    try {
      return { rows: await cursor.read(2) };
    } finally {
      await cursor.close();
    }
  }
  const limited = form === 'timeout' ? outcomeOf(() => client.query('set local statement_timeout = 300')) : undefined;
  const asked = ask(texts[form] ?? '');
  await limited;
  return await asked;
}

/** For each note that may be recorded, who may be recorded with it. */
function expectedOf(ran: readonly Ran[], isPipelined = false): Map<string, (Context | null)[]> {
  const expected = new Map<string, (Context | null)[]>();
  let status: 'I' | 'T' | 'E' = 'I';
  let earlier: (Context | null)[] = [null];
  for (const { step, tag, who, outcome } of ran) {
    const inside = status === 'T';
    const attributed = forms[step.form];
    if (attributed !== 'neither' && (inside || (attributed === 'both' && !isPipelined))) expected.set(tag, [who]);
    else expected.set(tag, inside ? earlier : [null]);
    // Its first part says who; after its commit nobody has.
    if (step.form === 'begins') expected.set(`${tag} later`, [null]);
    if (inside) earlier = [...earlier, who];
    const isNew = status === 'I' || ((step.form === 'chain' || step.form === 'begins') && !hasFailed(outcome));
    status = statusAfter(status, step.form, outcome);
    if (isNew || status === 'I') earlier = [null];
  }
  return expected;
}

function hasFailed(outcome: unknown): boolean {
  return typeof outcome === 'object' && outcome !== null && 'code' in outcome && outcome.code !== undefined;
}

function statusAfter(status: 'I' | 'T' | 'E', form: Form, outcome: unknown): 'I' | 'T' | 'E' {
  if (form === 'commit' || form === 'rollback') return 'I';
  if (hasFailed(outcome)) return status === 'I' ? 'I' : 'E';
  if (form === 'chain') return status === 'I' ? 'I' : 'T';
  if (form === 'begin' || form === 'begins' || form === 'back') return 'T';
  return status;
}

/** The changes that are recorded with somebody who may not be. */
function faultsOf(recorded: readonly Recorded[], expected: ReadonlyMap<string, (Context | null)[]>): unknown[] {
  return recorded.flatMap(({ note, who }) => {
    const allowed = expected.get(note ?? '');
    const isAllowed = allowed?.some((one) => JSON.stringify(one) === JSON.stringify(who)) ?? false;
    return isAllowed ? [] : [{ note, who, allowed }];
  });
}

interface LawOptions {
  readonly shop: Shop;
  readonly open: () => Promise<pg.Client>;
  /** Forms that these connections do not support. */
  readonly without?: readonly Form[];
  readonly isPipelined?: boolean;
}

const connections = 4;

/**
 * Runs random programs on clients without and with attribution. Each change has the context of its own query, by triggers and by
 * capture, and the outcomes are the same.
 */
export async function holdLaw({ shop, open, without = [], isPipelined = false }: LawOptions): Promise<void> {
  const openAll = () => Promise.all(Array.from({ length: connections }, open));
  const plain = await openAll();
  const attributed = (await openAll()).map((client) => attribute(client));
  // After the first transaction the server is known to take the setting.
  for (const client of attributed) await client.query('begin; rollback');
  const { rows } = await shop.pool.query("select current_setting('server_version_num')::int >= 150000 as merges");
  const run = async (clients: readonly pg.Client[], program: Step[][]) => {
    const ran = await Promise.all(clients.map((client, index) => runProgram(client, index, program[index] ?? [])));
    await shop.pool.query('truncate items');
    return ran;
  };
  const outcomesOf = (ran: Ran[][]) => ran.map((steps) => steps.map(({ outcome }) => outcome));
  const inOrder = (changes: object[]) => changes.map((change) => JSON.stringify(change)).sort();
  let [all, known] = [0, 0];
  await fc.assert(
    fc.asyncProperty(programs(connections, rows[0].merges ? without : [...without, 'merge']), async (program) => {
      const expected = outcomesOf(await run(plain, program));
      await shop.byTriggers();
      await shop.byCapture();
      const ran = await run(attributed, program);
      const allowed = new Map(ran.flatMap((steps) => [...expectedOf(steps, isPipelined)]));
      const [byTriggers, byCapture] = [await shop.byTriggers(), await shop.byCapture()];
      expect(faultsOf(byTriggers, allowed)).toEqual([]);
      expect(faultsOf(byCapture, allowed)).toEqual([]);
      expect(inOrder(byCapture)).toEqual(inOrder(byTriggers));
      expect(outcomesOf(ran)).toEqual(expected);
      all += byTriggers.length;
      known += byTriggers.filter(({ who }) => who !== null).length;
    }),
    // To shrink a program takes a run of each smaller one.
    { seed: Number(process.env.ANNALS_SEED), numRuns: trials(20), endOnFailure: true },
  );
  console.info(`${all} changes, ${known} with a context`);
}
