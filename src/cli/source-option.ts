import { OperatorError } from '../core/errors.ts';
import type { Database } from '../postgres/database.ts';
import { readSource, type Source, SourceAwayError } from '../postgres/source/source.ts';
import type { Mapping } from '../recording/mapping/mapping.ts';
import { RefusedChangesError } from '../recording/mapping/record-mapped.ts';
import { RecorderError } from '../sources/outbox/record-over-http.ts';
import { type CommandIo, UsageError } from './command.ts';
import { requireNamedTenant } from './require-tenant.ts';

/** The source of `--from` or ANNALS_SOURCE_URL. */
export function sourceOf(from: string | undefined, { environment }: CommandIo): Source {
  const url = from ?? environment.ANNALS_SOURCE_URL;
  if (url === undefined || url === '') throw new UsageError('the source is missing: --from URL or ANNALS_SOURCE_URL');
  return readSource(url);
}

/** The file of `--mapping` or ANNALS_RECORDER_MAPPING. */
export function mappingFileOf(file: string | undefined, { environment }: CommandIo): string {
  const path = file ?? environment.ANNALS_RECORDER_MAPPING;
  if (path === undefined || path === '')
    throw new UsageError('a mapping is missing: --mapping FILE or ANNALS_RECORDER_MAPPING');
  return path;
}

/** Throws an OperatorError if the mapping names no tenant, or one for all changes that does not exist. */
export async function requireTenant(db: Database, { tenant: rule }: Mapping): Promise<void> {
  if (rule === undefined) throw new OperatorError('the mapping names no tenant');
  if (rule.kind === 'value') await requireNamedTenant(db, rule.tenant);
}

/** Runs work with a source. Errors that an operator can correct are shown without a stack. */
export async function forOperators<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isForOperators(error)) throw new OperatorError(error.message);
    throw error;
  }
}

function isForOperators(error: unknown): error is Error {
  return [OperatorError, SourceAwayError, RefusedChangesError, RecorderError].some((kind) => error instanceof kind);
}
