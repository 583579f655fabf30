/** An error that the operator can correct. The message says how, and Annals prints it without a stack. */
export class OperatorError extends Error {
  constructor(message: string, options: ErrorOptions = {}) {
    super(message, options);
    this.name = 'OperatorError';
  }
}

/** The closed list of error types that clients may see (contract: errors), each with its HTTP status. */
export const statusOfErrorType = {
  validation_violation: 400,
  price_unknown: 400,
  insufficient_permissions: 403,
  quota_exceeded: 403,
  resource_not_found: 404,
  method_not_allowed: 405,
  conflict_resource: 409,
  cursor_invalid: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  misdirected_request: 421,
  change_rejected: 422,
  rate_limit_exceeded: 429,
  request_header_fields_too_large: 431,
  internal_service_error: 500,
  provider_error: 502,
  service_unavailable: 503,
  provider_timeout: 504,
} as const;

export type ErrorType = keyof typeof statusOfErrorType;

/** Maximum details of an answer (contract: one tenant cannot stop another). Checks stop there. */
export const maxDetails = 10;

export interface ErrorDetail {
  field: string;
  message: string;
}

/**
 * The only error whose message clients see; any other becomes a 500 without its message. `headers`, for example
 * `Retry-After`, go into the answer.
 */
export class AnnalsError extends Error {
  readonly type: ErrorType;
  readonly status: number;
  readonly details: readonly ErrorDetail[];
  readonly headers: Readonly<Record<string, string>>;
  /** For protocols with error codes of their own. */
  readonly code: string | undefined;
  /** Of a provider's error that is passed on, message included: its own type and code. */
  readonly passed: { readonly type: string | null; readonly code: string | null } | undefined;

  constructor(
    type: ErrorType,
    message: string,
    options: {
      details?: readonly ErrorDetail[];
      headers?: Readonly<Record<string, string>>;
      code?: string | undefined;
      passed?: AnnalsError['passed'];
      cause?: unknown;
    } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'AnnalsError';
    this.type = type;
    this.status = statusOfErrorType[type];
    this.details = options.details ?? [];
    this.headers = options.headers ?? {};
    this.code = options.code;
    this.passed = options.passed;
  }
}

/** An invalid value: the message is that of the error and of its one detail. */
export function invalidField(field: string, message: string): AnnalsError {
  return new AnnalsError('validation_violation', message, { details: [{ field, message }] });
}

/** A body with invalid fields. */
export function invalidBody(...details: readonly ErrorDetail[]): AnnalsError {
  return new AnnalsError('validation_violation', 'The request body is not valid.', { details });
}

/** The code of a failed system call (`ENOENT`), or the SQLSTATE of an error of PostgreSQL; undefined without one. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Whether the error has one of these codes. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes(codeOf(error) ?? '');
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
