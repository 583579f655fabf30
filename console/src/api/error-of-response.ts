import { ApiError, type ErrorDetail } from '@annals/client';

/** The error of an answer that the client has not read itself. */
export async function errorOfResponse(response: Response): Promise<ApiError> {
  const body = messageOf(await response.text());
  const fault = body.fault?.faultstring;
  return new ApiError(body.type ?? 'unknown', body.message ?? fault ?? `The service answered ${response.status}.`, {
    status: response.status,
    details: body.details,
    requestId: response.headers.get('x-request-id') ?? undefined,
    retryAfter: secondsOf(response.headers.get('retry-after')),
  });
}

/** The service's two forms of an error. */
interface ErrorMessage {
  readonly type?: string;
  readonly message?: string;
  readonly details?: readonly ErrorDetail[];
  readonly fault?: { readonly faultstring?: string };
}

function messageOf(text: string): ErrorMessage {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    // For example the page of a proxy. Only its status tells something.
    return {};
  }
}

function secondsOf(retryAfter: string | null): number | undefined {
  return retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined;
}
