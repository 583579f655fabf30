import { readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { OperatorError } from '../../core/errors.ts';
import type { Database } from '../../postgres/database.ts';
import { type FindTenants, forEachTenant, type TenantWork } from '../../postgres/tenants/tenants-with.ts';
import { readLog, readNodes } from '../log/log-store.ts';
import { consistencyRanges, hashOfRange } from '../log/merkle.ts';
import { parseNote } from '../log/note.ts';
import { type Policy, parsePolicy, type Witness, witnessesOf } from '../log/policy.ts';
import type { Sealing } from '../log/seal-tenants.ts';
import { askWitness } from './ask-witness.ts';

/** Tenants whose newest checkpoint was not shown to all witnesses yet. */
export const uncosigned: TenantWork = {
  table: 'proof_log',
  condition: `ended is null and checkpoint is not null and cosigned < size
    and coalesce(cosign_after, '-infinity') <= statement_timestamp()`,
};

/** What seals histories, and has witnesses sign them. */
export interface WitnessedSealing extends Sealing {
  /** Undefined: no policy names witnesses. */
  readonly cosigner?: Cosigner | undefined;
}

/** Milliseconds until an unreachable witness is retried. */
const pauseOfWitness = 30_000;
/** Until witnesses that did not sign are retried. */
const pauseOfLog = '60 s';

export type CosigningOutcome = 'signed' | 'refused' | 'failed';

export interface CosigningOptions {
  readonly signal: AbortSignal;
  readonly findTenants: FindTenants;
  /** Called with each answer of a witness; `fault`: why it gave no cosignature. */
  readonly onAnswer: (witness: string, outcome: CosigningOutcome, fault?: string) => void;
}

/** Asks the witnesses of a policy to sign the newest checkpoints. One witness does not delay another. */
export class Cosigner {
  readonly #witnesses: readonly (Witness & { readonly url: string })[];
  readonly #policy: Policy;
  /** By the name of a witness, when it may be retried. */
  readonly #awayUntil = new Map<string, number>();
  /** By witness and log, the size of the tree that it signed last. */
  readonly #signed = new Map<string, number>();

  constructor(policy: Policy) {
    this.#policy = policy;
    this.#witnesses = policy.witnesses.flatMap(({ url, ...witness }) =>
      url === undefined ? [] : [{ ...witness, url }],
    );
  }

  async cosignAll(db: Database, { signal, findTenants, onAnswer }: CosigningOptions): Promise<void> {
    const tenants = await findTenants(uncosigned);
    await forEachTenant(tenants, async (tenant) => {
      if (!signal.aborted) await this.cosign(db, tenant, { signal, onAnswer });
    });
  }

  /** Asks each witness that has not signed the newest checkpoint of the tenant, all at once. */
  async cosign(
    db: Database,
    tenant: string,
    { signal, onAnswer }: Pick<CosigningOptions, 'signal' | 'onAnswer'>,
  ): Promise<void> {
    const log = await readLog(db, tenant);
    if (log?.checkpoint == null) return;
    const { origin, size, checkpoint } = log;
    // Without the lines of other witnesses: each signs what the log signed.
    const own = checkpoint.slice(0, checkpoint.indexOf('\n', checkpoint.indexOf('\n\n') + 2) + 1);
    const note = parseNote(checkpoint);
    const seen = note === undefined ? 'wrong' : witnessesOf(note, this.#policy);
    const missing = this.#witnesses.filter(
      ({ name }) => (seen === 'wrong' || !seen.has(name)) && (this.#awayUntil.get(name) ?? 0) <= performance.now(),
    );
    const read = readNodes(db, tenant, size);
    const results = await Promise.all(
      missing.map(async (witness) => {
        const prove = (oldSize: number) =>
          Promise.all(consistencyRanges(oldSize, size).map((range) => hashOfRange(range, read)));
        const known = `${witness.name} ${origin}`;
        const result = await askWitness(witness, { size, note: own, prove }, this.#signed.get(known) ?? 0, signal);
        if ('line' in result) {
          this.#signed.set(known, size);
          onAnswer(witness.name, 'signed');
          return result.line;
        }
        this.#awayUntil.set(witness.name, performance.now() + pauseOfWitness);
        onAnswer(witness.name, result.isRefused ? 'refused' : 'failed', result.fault);
        return '';
      }),
    );
    // A line that is not for this checkpoint was put there by somebody else.
    const base = seen === 'wrong' ? own : checkpoint;
    const count = (seen === 'wrong' ? 0 : seen.size) + results.filter((line) => line !== '').length;
    await sql`update proof_log
      set checkpoint = ${base + results.join('')},
          cosigned = case when ${count >= this.#witnesses.length} then ${size}::bigint else cosigned end,
          cosign_after = statement_timestamp() + ${pauseOfLog}::interval
      where tenant = ${tenant} and origin = ${origin} and checkpoint = ${checkpoint}`.execute(db);
  }
}

/**
 * Asks the witnesses of the policy in that file. Throws an OperatorError for what is no policy, or names no witness to
 * ask.
 */
export function openCosigner(file: string): Cosigner {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new OperatorError(`ANNALS_PROOF_POLICY names ${file}, which cannot be read`, { cause: error });
  }
  try {
    const policy = parsePolicy(text);
    if (policy.witnesses.some(({ url }) => url !== undefined)) return new Cosigner(policy);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new OperatorError(`ANNALS_PROOF_POLICY names ${file}, in which ${error.message}`, { cause: error });
  }
  throw new OperatorError(`ANNALS_PROOF_POLICY names ${file}, which has no witness with a URL`);
}
