import { constants } from 'node:os';
import { ConfigError } from '../core/config/config.ts';
import { AnnalsError, OperatorError } from '../core/errors.ts';
import { tlsFailure } from '../postgres/connections/tls.ts';
import { Stopped, UsageError } from './command.ts';

/** What a failed command prints on stderr, and its exit code. */
export interface ErrorReport {
  lines: string[];
  code: number;
}

/** A failure that another process has reported already. */
export class ReportedError extends Error {
  readonly report: ErrorReport;

  constructor(report: ErrorReport) {
    super(report.lines.join('\n'));
    this.name = 'ReportedError';
    this.report = report;
  }
}

/** `command`: the name of the command, if it is known. */
export function reportOf(error: unknown, command: string | undefined): ErrorReport {
  if (error instanceof ReportedError) return error.report;
  if (error instanceof Stopped) return { lines: [], code: 128 + constants.signals[error.signal] };
  if (error instanceof ConfigError) return { lines: error.faults.map((fault) => `annals: ${fault}`), code: 2 };
  if (error instanceof UsageError) {
    const see = `See: annals ${command === undefined ? '' : `${command} `}--help`;
    return { lines: [`annals: ${error.message}`, see], code: 2 };
  }
  const message = isForOperators(error) ? error.message : describe(error);
  return {
    lines: [`annals: ${message}`],
    code: error instanceof AnnalsError && error.type === 'validation_violation' ? 2 : 1,
  };
}

function isForOperators(error: unknown): error is Error {
  return error instanceof OperatorError || error instanceof AnnalsError;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return 'a value other than an error was thrown';
  const fault = databaseFault(error);
  return fault === undefined ? (error.stack ?? error.message) : `the database of DATABASE_URL ${fault}`;
}

/** The message for operators if the database is to blame. The driver's messages do not contain the password. */
function databaseFault(error: Error): string | undefined {
  const code = 'code' in error ? String(error.code) : '';
  if (/^(ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)$/.test(code)) {
    return `cannot be reached (${code})`;
  }
  if (error.message === 'timeout expired' || error.message.startsWith('timeout exceeded when trying to connect')) {
    return 'cannot be reached: no answer within 5 seconds';
  }
  const tls = tlsFailure(error);
  if (tls !== undefined) return `cannot be reached over TLS: ${tls}`;
  // Of pgbouncer. With ?pooler=transaction Annals sends no such parameter.
  if (error.message.startsWith('unsupported startup parameter')) {
    return `is behind a pooler: put ?pooler=transaction at the end of DATABASE_URL (${error.message})`;
  }
  // insufficient_privilege: since PostgreSQL 15, mostly a role that does not own its database.
  if (code === '42501') {
    return `refuses: ${error.message} (${code}). docs/deploy.md says which rights the role needs, under "Managed PostgreSQL"`;
  }
  // connection_exception: from the coordinator of a cluster, about a worker.
  if (/^080(00|01|03|04|06)$/.test(code)) return `cannot reach another server: ${error.message} (${code})`;
  // SQLSTATE classes: 28 authorisation, 3D no such database, 57 the server stops or starts, 53 insufficient resources.
  return /^(28|3D|57|53)[0-9A-Z]{3}$/.test(code) ? `refuses: ${error.message} (${code})` : undefined;
}
