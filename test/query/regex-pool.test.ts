import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { AnnalsError } from '../../src/core/errors.ts';
import { ThreadPool } from '../../src/core/fairness/threads.ts';
import { doWork } from '../../src/core/fairness/work.ts';
import { QueryError } from '../../src/query/query-error.ts';
import { charactersOfPart, RegexBudget, RegexMatcherPool } from '../../src/query/regex-pool.ts';

const pool = new RegexMatcherPool(new ThreadPool({ size: 1 }));

const people = Array.from({ length: 10_000 }, (_, index) => `Jane Doe ${index}`);
/** Random enough that an automaton for `hostile` never meets a state again. */
const noise = (() => {
  let state = 1;
  const letter = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state % 2 === 0 ? 'a' : 'b';
  };
  return Array.from({ length: 1000 }, () => Array.from({ length: 1000 }, letter).join(''));
})();
const hostile = '[ab]*a[ab]{200}[cd]';

const run = promisify(execFile);

describe('names', () => {
  it('are searched, not matched as a whole', async () => {
    const found = await pool.matchNames('oh|^J', ['John', 'Jane', 'Foo Joh', 'Foo J', '']);
    expect([...found]).toEqual([1, 1, 1, 0, 0]);
  });

  it('are searched in the same way where there are many', async () => {
    const found = await pool.matchNames('(?i)doe \\d*7$', people);
    expect([...found]).toEqual(people.map((name) => (name.endsWith('7') ? 1 : 0)));
    expect([...(await pool.matchNames('Doe$', people))]).toEqual(people.map(() => 0));
  });

  it('may be none', async () => {
    expect(await pool.matchNames('a', [])).toHaveLength(0);
  });
});

describe('a pattern', () => {
  it('that is none is a QueryError at its position', async () => {
    for (const names of [['a'], people]) {
      const error = await rejectionOf(pool.matchNames('a**', names, { position: 7 }));
      expect(error).toBeInstanceOf(QueryError);
      expect(error).toMatchObject({ position: 7, message: expect.stringMatching(/RE2 syntax/) });
    }
  });

  it('whose size times the characters passes the budget is a QueryError that says so', async () => {
    const names = Array.from({ length: 1000 }, () => 'a'.repeat(1000));
    const error = await rejectionOf(pool.matchNames('[a-z]{0,1000}[0-9]$', names));
    expect(error).toBeInstanceOf(QueryError);
    expect(error).toMatchObject({
      message: expect.stringMatching(/size times the characters .* within 1,000,000,000/),
    });
    await pool.matchNames('[a-z]{0,1000}[0-9]$', names.slice(0, 100));
  });

  it('that is too large to compile is a QueryError whatever the names', async () => {
    expect(await rejectionOf(pool.matchNames('((a{0,100}){0,100}){0,100}', ['a']))).toBeInstanceOf(QueryError);
  });

  it('that takes more processor time than the budget has is a QueryError', async () => {
    const budget = new RegexBudget({ processorTime: 20 });
    const error = await rejectionOf(pool.matchNames(hostile, noise, { budget }));
    expect(error).toBeInstanceOf(QueryError);
    expect(error).toMatchObject({ message: expect.stringMatching(/less time and memory/) });
    expect([...(await pool.matchNames('^a', ['a']))]).toEqual([1]);
  });

  it('shares its steps with the other patterns of its query', async () => {
    const budget = new RegexBudget({ steps: 2_000_000 });
    await pool.matchNames('Doe', people, { budget });
    expect(budget.steps).toBeLessThan(2_000_000);
    expect(await rejectionOf(pool.matchNames('Jane Doe', people, { budget }))).toBeInstanceOf(QueryError);
  });

  it('shares its processor time with the other patterns of its query', async () => {
    const budget = new RegexBudget({ processorTime: 20 });
    await rejectionOf(pool.matchNames(hostile, noise, { budget }));
    expect(budget.processorTime).toBeLessThan(0);
    const error = await rejectionOf(pool.matchNames('Doe', people, { budget }));
    expect(error).toMatchObject({ message: expect.stringMatching(/less time and memory/) });
  });

  it('backtracks nowhere', async () => {
    const names = Array.from({ length: 2000 }, () => `${'a'.repeat(999)}!`);
    expect((await pool.matchNames('(a+)+$', names)).some((matched) => matched === 1)).toBe(false);
    expect((await pool.matchNames('(x+x+)+[yz]', names)).some((matched) => matched === 1)).toBe(false);
  });
});

describe('a pool', () => {
  it('ends a thread that the clock says takes too long, and continues with another', async () => {
    const hasty = new RegexMatcherPool(new ThreadPool({ size: 1 }), 1500);
    const budget = new RegexBudget({ steps: Number.POSITIVE_INFINITY, processorTime: 100_000 });
    const slow = rejectionOf(hasty.matchNames('[ab]*a[ab]{800}[cd]', noise, { budget }));
    const next = hasty.matchNames('Jane', people.slice(0, 4000));
    expect(await slow).toBeInstanceOf(QueryError);
    expect((await next).every((matched) => matched === 1)).toBe(true);
  });

  it('loses a thread that wants too much memory, and continues with another', async () => {
    const small = new RegexMatcherPool(new ThreadPool({ size: 1, memory: 14 }));
    const budget = new RegexBudget({ steps: 1e12, processorTime: 100_000 });
    const call = small.matchNames('(?:[ab]?\\pL){0,900}[0-9]$', noise, { budget });
    expect(await rejectionOf(call)).toBeInstanceOf(QueryError);
    expect([...(await small.matchNames('^J', people))]).toEqual(people.map(() => 1));
  });

  it('lets so many calls of a tenant wait and refuses one more with 429', async () => {
    const narrow = new RegexMatcherPool(new ThreadPool({ size: 1, waiting: 1 }));
    const first = narrow.matchNames('Doe', people);
    const second = narrow.matchNames('Jane', people);
    const refused = await rejectionOf(narrow.matchNames('Jane', people));
    expect(refused).toBeInstanceOf(AnnalsError);
    expect(refused).toMatchObject({ status: 429, headers: { 'Retry-After': '1' } });
    expect((await first).length + (await second).length).toBe(2 * people.length);
  });

  it('gives a tenant its turn before an attacker has matched all of its names', async () => {
    const order: string[] = [];
    const match = (tenant: string, source: string, names: readonly string[]) =>
      doWork({ tenant }, () => pool.matchNames(source, names)).finally(() => order.push(tenant));
    const many = Array.from({ length: 8 }, () => people).flat();
    const attack = Array.from({ length: 8 }, (_, index) => match('attacker', `Doe ${index}`, many));
    await match('bystander', 'Doe 7$', people);
    expect(order).toEqual(['bystander']);
    for (const found of await Promise.all(attack)) expect(found).toHaveLength(many.length);
  });

  it.each([
    ['does not lose its thread over one portion of names', 0, ['first', 'next']],
    ['makes way after one portion of names', 1, ['next', 'first']],
  ])('%s', async (_title, more, expected) => {
    const charactersOfName = 64;
    // Each name counts 16 more than it has characters.
    const name = 'Jane Doe'.padEnd(charactersOfName - 16, '.');
    const portion = Array.from({ length: charactersOfPart / charactersOfName }, () => name);
    const order: string[] = [];
    const match = (tenant: string, names: readonly string[]) =>
      doWork({ tenant }, () => pool.matchNames('Doe', names)).finally(() => order.push(tenant));
    await Promise.all([match('first', portion.concat(Array(more).fill(name))), match('next', portion)]);
    expect(order).toEqual(expected);
  });

  it('with nothing to do lets the process end', async () => {
    const file = pathToFileURL(resolve('src/query/regex-pool.ts')).href;
    const script = `import { RegexMatcherPool } from ${JSON.stringify(file)};
      const found = await new RegexMatcherPool().matchNames('7$', Array.from({ length: 50_000 }, (_, index) => 'name ' + index));
      console.log(found.filter((matched) => matched === 1).length);`;
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script]);
    expect(stdout).toBe('5000\n');
  });
});

async function rejectionOf(call: Promise<unknown>): Promise<unknown> {
  return await call.then(
    () => undefined,
    (error: unknown) => error,
  );
}

it('starts a thread when it warms up, and the first names are matched in that one', async () => {
  const cold = new RegexMatcherPool(new ThreadPool({ size: 1 }));
  let started = 0;
  const onWorker = () => {
    started += 1;
  };
  process.on('worker', onWorker);
  try {
    await cold.warmUp();
    expect(started).toBe(1);
    await cold.matchNames('(?i)doe \\d*7$', people);
    expect(started).toBe(1);
  } finally {
    process.off('worker', onWorker);
  }
});
