import { sql } from 'kysely';
import type { Sealer } from '../../core/sealing.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';
import { findSession } from './listed-sessions.ts';
import { lockSession } from './session-store.ts';
import type { Sessions } from './sessions.ts';

/** What the rules of a tenant say to a person who signed in at the provider. */
export interface JudgedSignIn {
  readonly issuer: string;
  readonly subject: string;
  readonly name: string;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly rules: readonly object[];
  readonly outcome: string;
}

/** Why there is nothing to judge: the provider refused the sign-in, or its answer was refused. */
interface FailedSignIn {
  readonly outcome: string;
}

/** A test for the session that began it. */
interface ShownTest {
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly outcome: string;
  /** Whether the person of the session signed in. If not, claims have no values, and nothing says who it was. */
  readonly isOwn?: boolean;
  readonly subject?: string;
  readonly name?: string;
  /** `value` is JSON text. */
  readonly claims?: readonly { readonly name: string; readonly value?: string }[];
  readonly rules?: readonly object[];
}

interface TestOfSession {
  readonly tenant: string;
  /** Its id. */
  readonly session: string;
}

/** Milliseconds. */
export const testLifetime = 10 * 60_000;
/** Claims of a test, and characters of a name and a value. */
export const testLimits = { claims: 200, name: 200, value: 2_000 };

/** Results of sign-in tests. Each is stored with the session that began it, and shown to that session alone. */
export class SignInTests {
  readonly #sealer: Sealer;
  readonly #sessions: Sessions;
  readonly #now: () => number;

  constructor({
    sealer,
    sessions,
    now,
  }: {
    sealer: Sealer;
    sessions: Sessions;
    /** Milliseconds since 1970. */
    now: () => number;
  }) {
    this.#sealer = sealer;
    this.#sessions = sessions;
    this.#now = now;
  }

  /** Stores the result, unless the session has ended. Values of claims are stored for the session's own person only. */
  async keep({ tenant, session }: TestOfSession, result: JudgedSignIn | FailedSignIn): Promise<void> {
    await this.#sessions.write(tenant, async (transaction) => {
      const secretHash = await findSession(transaction, tenant, session);
      const owner = secretHash && (await lockSession(transaction, tenant, secretHash));
      if (owner === undefined) return;
      const isOwn = 'claims' in result && owner.issuer === result.issuer && owner.subject === result.subject;
      const shown: ShownTest = { at: new Date(this.#now()).toISOString(), ...shownResult(result, isOwn) };
      const sealed = this.#sealer.seal(Buffer.from(JSON.stringify(shown)), purposeOf(tenant));
      await sql`
        update console_session set sealed_test = ${sealed}
          where tenant = ${tenant} and secret_hash = ${secretHash}`.execute(transaction);
    });
  }

  /** The last test that the session began, if it is not older than ten minutes. */
  async read({ tenant, session }: TestOfSession): Promise<ShownTest | undefined> {
    const sealed = await this.#sessions.write(tenant, async (transaction) => {
      const secretHash = await findSession(transaction, tenant, session);
      if (secretHash === undefined) return undefined;
      const row = await transaction
        .selectFrom('console_session')
        .select('sealed_test')
        .where(({ and }) => and({ tenant, secret_hash: secretHash }))
        .executeTakeFirst();
      return row?.sealed_test ?? undefined;
    });
    const opened = sealed && this.#sealer.open(sealed, purposeOf(tenant));
    if (opened === undefined) return undefined;
    const test: ShownTest = JSON.parse(Buffer.from(opened).toString());
    return Date.parse(test.at) > this.#now() - testLifetime ? test : undefined;
  }
}

function shownResult(result: JudgedSignIn | FailedSignIn, isOwn: boolean): Omit<ShownTest, 'at'> {
  if (!('claims' in result)) return { outcome: result.outcome };
  const { outcome, subject, name, rules, claims } = result;
  const entries = Object.entries(claims).slice(0, testLimits.claims);
  return {
    outcome,
    isOwn,
    ...(isOwn && { subject, name }),
    claims: entries.map(([claim, value]) => ({
      name: claim.slice(0, testLimits.name),
      ...(isOwn && { value: JSON.stringify(value).slice(0, testLimits.value) }),
    })),
    rules,
  };
}

function purposeOf(tenant: string): string {
  return `sign-in test of a console session of ${tenant}`;
}

/** The sealed results, for `annals secrets reseal`. */
export const sealedTests: SealedColumn = {
  table: 'console_session',
  column: 'sealed_test',
  keys: ['tenant', 'secret_hash'],
  purposeOf: ({ tenant }) => purposeOf(String(tenant)),
};
