/** One field that is wrong, and why. */
export interface ErrorDetail {
  readonly field: string;
  readonly message: string;
}

export interface ApiErrorOptions {
  readonly status?: number | undefined;
  readonly details?: readonly ErrorDetail[] | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfter?: number | undefined;
  readonly attempts?: number | undefined;
  readonly cause?: unknown;
}

/**
 * The error of every call that fails. `type` tells what happened; `message` is for people.
 *
 * @example
 * try {
 *   await annals.agents.get('price-desk');
 * } catch (error) {
 *   if (error instanceof ApiError && error.type === 'resource_not_found') return undefined;
 *   throw error;
 * }
 */
export class ApiError extends Error {
  /** The HTTP status; undefined where no answer came. */
  readonly status: number | undefined;
  /**
   * The service's `type`, such as `validation_violation`; the `errorcode` of a refused access token; the `error` of the
   * token endpoint, such as `invalid_client`. The client's own: `connection_failed`, `timeout`, `invalid_answer`,
   * `unknown`.
   */
  readonly type: string;
  /** What is wrong with which field; empty where the service names none. */
  readonly details: readonly ErrorDetail[];
  /** The id under which the service's log has the request. */
  readonly requestId: string | undefined;
  /** The seconds after which the service asks to be called again. */
  readonly retryAfter: number | undefined;
  /** How often the request was sent. With more than one, an earlier attempt may have arrived. */
  readonly attempts: number;

  constructor(type: string, message: string, options: ApiErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ApiError';
    this.type = type;
    this.status = options.status;
    this.details = options.details ?? [];
    this.requestId = options.requestId;
    this.retryAfter = options.retryAfter;
    this.attempts = options.attempts ?? 1;
  }
}

/**
 * The error of an answer that is not a success. The type is `unknown` if the body has none of the forms that the
 * service uses.
 */
export function errorOfAnswer(
  { status, headers }: { readonly status: number; readonly headers: Headers },
  body: string,
  { requestId, attempts }: { requestId: string; attempts: number },
): ApiError {
  const told = readErrorForm(parsedOrNothing(body));
  return new ApiError(told?.type ?? 'unknown', told?.message ?? `The service answered ${status}.`, {
    status,
    details: told?.details,
    requestId: headers.get('x-request-id') ?? requestId,
    retryAfter: secondsOf(headers.get('retry-after')),
    attempts,
  });
}

interface ErrorForm {
  readonly type: string;
  readonly message: string;
  readonly details?: readonly ErrorDetail[];
}

/** The service has three forms: the error message, the fault of an access token, and the error of RFC 6749. */
export function readErrorForm(body: unknown): ErrorForm | undefined {
  if (!isRecord(body)) return undefined;
  if (typeof body.type === 'string') {
    const details = Array.isArray(body.details) ? body.details.filter(isDetail) : [];
    return { type: body.type, message: textOf(body.message), details };
  }
  if (isRecord(body.fault)) {
    const { faultstring, detail } = body.fault;
    return { type: textOf(isRecord(detail) ? detail.errorcode : undefined), message: textOf(faultstring) };
  }
  if (typeof body.error === 'string') {
    return { type: body.error, message: textOf(body.error_description ?? body.error) };
  }
  return undefined;
}

function parsedOrNothing(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isDetail(value: unknown): value is ErrorDetail {
  return isRecord(value) && typeof value.field === 'string' && typeof value.message === 'string';
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : 'unknown';
}

/** A Retry-After in seconds, written as a number or as a date; undefined where there is none. */
function secondsOf(retryAfter: string | null): number | undefined {
  if (retryAfter === null) return undefined;
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter);
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1_000));
}
