import { expect, test } from 'vitest';
import { createEmptyTestDatabase, createSingleTestDatabase } from '../../support/server/database.ts';

interface LabelledRoutine {
  name: string;
  body: string;
  /** `s`afe, `r`estricted or `u`nsafe. */
  label: string;
}

/**
 * What no plan that reads in parallel may do, in its leader neither. Before PostgreSQL 17 subtransactions are among it.
 */
const unsafe =
  /\bexception\s+when\b|\b(?:insert\s+into|update\s+\w+\s+(?:as\s+\w+\s+)?set|delete\s+from|merge\s+into|truncate|create|drop|alter|lock\s+table|set_config|nextval|setval)\b/;

/**
 * The text without comments and literals. A statement that is executed as text counts, so `format` keeps its literals.
 */
function codeOf(body: string): string {
  const code = body.toLowerCase().replaceAll(/--[^\n]*/g, '');
  return code.includes('execute') ? code : code.replaceAll(/'(?:[^']|'')*'/g, "''");
}

/** The routines that a plan may run in parallel although they, or what they call, are unsafe. */
function mislabelled(routines: readonly LabelledRoutine[]): string[] {
  const codes = new Map(routines.map(({ name, body }) => [name, codeOf(body)]));
  const found = new Set(routines.flatMap(({ name }) => (unsafe.test(codes.get(name) ?? '') ? [name] : [])));
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const [name, code] of codes) {
      if ([...found].some((other) => new RegExp(String.raw`\b${other}\s*\(`).test(code))) found.add(name);
    }
  }
  return routines.filter(({ name, label }) => label !== 'u' && found.has(name)).map(({ name }) => name);
}

const labels = `select proname as name, prosrc as body, proparallel as label from pg_proc
  where pronamespace = current_schema()::regnamespace and prokind <> 'a'`;

test('a routine with an exception block, or that writes, or that calls such a one, is parallel unsafe', async () => {
  const { pool, drop } = await createSingleTestDatabase();
  try {
    const { rows } = await pool.query<LabelledRoutine>(labels);
    expect(rows.length).toBeGreaterThan(50);
    expect(rows.filter(({ label }) => label !== 'u').length).toBeGreaterThan(10);
    expect(mislabelled(rows)).toEqual([]);
  } finally {
    await drop();
  }
});

test('the check finds an exception block, in a routine and beneath one', async () => {
  const { pool, drop } = await createEmptyTestDatabase();
  try {
    await pool.query(`
      create function reads() returns integer language sql parallel safe as $$ select 1 $$;
      create function guarded() returns integer language plpgsql parallel restricted as $$
        begin return 1 / 0; exception when division_by_zero then return 0; end $$;
      create function calls() returns integer language plpgsql parallel safe as $$ begin return guarded(); end $$;
      create function unsafe() returns integer language plpgsql as $$ begin return guarded(); end $$;`);
    const { rows } = await pool.query<LabelledRoutine>(labels);
    expect(mislabelled(rows).toSorted()).toEqual(['calls', 'guarded']);
  } finally {
    await drop();
  }
});
