import { type ErrorType, statusOfErrorType } from '../../core/errors.ts';
import { ErrorMessage, UnauthorizedFault } from '../error-answers.ts';
import type { Components } from './components.ts';

/** Errors of every operation. */
export const errorsOfAll: readonly ErrorType[] = ['request_header_fields_too_large'];

/** Errors of every operation under a tenant, in addition to 401 (contract: errors). */
export const errorsUnderTenant: readonly ErrorType[] = [
  'validation_violation',
  'insufficient_permissions',
  'rate_limit_exceeded',
  'internal_service_error',
  'service_unavailable',
];

/** When an operation answers this error, and the message of an example. */
const errors: Readonly<Record<ErrorType, { when: string; message: string; field?: string }>> = {
  validation_violation: {
    when: 'The path, the query string, a header or the body is not valid.',
    message: 'The request body is not valid.',
    field: 'name',
  },
  price_unknown: {
    when: 'A budget limits the costs of the call, and the model has no price.',
    message: 'The model has no price, and the budget monthly limits costs.',
  },
  insufficient_permissions: {
    when:
      'The token is for another tenant, or has none of the scopes. Or its client sees only a part of the change history, of which ' +
      'this operation does not tell.',
    message: 'Given request does not have required scopes. It is not authorized to perform this operation.',
  },
  quota_exceeded: {
    when: 'The tenant has used its quota of the shared token, or a budget has less left than the call may need.',
    message: 'The quota of the shared token is used up.',
  },
  resource_not_found: { when: 'There is no such resource.', message: 'There is no such resource.' },
  method_not_allowed: {
    when: 'The path has no such method. `Allow` has its methods.',
    message: 'This path has no POST. Its methods are GET, HEAD.',
  },
  conflict_resource: {
    when: 'The resource is not in the state that the request expects.',
    message: 'The resource has been changed.',
  },
  cursor_invalid: {
    when: 'The database was restored: the position of the cursor is another one, or not there yet. `details` has the oldest cursor.',
    message: 'The database was restored to an earlier state. The cursor does not fit it any more.',
    field: 'reason',
  },
  payload_too_large: {
    when: 'The body is too large.',
    message: 'The request body must have at most 1048576 bytes.',
  },
  misdirected_request: {
    when: 'The `Host` is not the name of the console.',
    message: 'The console answers under its own name alone.',
  },
  change_rejected: {
    when: 'A change can never be recorded, and none of the request was.',
    message: '1 of the changes cannot be recorded. None was.',
    field: '0',
  },
  unsupported_media_type: {
    when: 'The content type of the body is not one of this operation.',
    message: 'The content type is not one that this operation accepts.',
  },
  rate_limit_exceeded: {
    when: 'The tenant has used its share: of requests, or of those under way. `Retry-After` says when to call again.',
    message: 'The tenant has too many requests under way.',
  },
  request_header_fields_too_large: {
    when: 'The request line or the header fields are too long.',
    message: 'The request line must have at most 65536 bytes.',
  },
  internal_service_error: { when: 'An internal error.', message: 'An internal error occurred.' },
  provider_error: { when: 'The provider failed, or broke off.', message: 'The provider failed.' },
  service_unavailable: {
    when: 'The database cannot be reached, or it took too long. `Retry-After` says when to call again.',
    message: 'The database cannot be reached.',
  },
  provider_timeout: { when: 'The provider took too long.', message: 'The provider took too long.' },
};

/** The answers of an operation with these errors, by status. */
export function errorAnswers(
  components: Components,
  types: readonly ErrorType[],
  { internalErrorMessage }: { internalErrorMessage?: string | undefined },
): Record<string, unknown> {
  const answers: Record<string, unknown> = {};
  for (const [status, sameStatus] of Object.entries(
    Object.groupBy(new Set(types), (type) => statusOfErrorType[type]),
  )) {
    const own = status === '500' ? internalErrorMessage : undefined;
    const answer = errorAnswer(components, sameStatus ?? [], own);
    // An answer with its own message is not a component.
    answers[status] =
      own === undefined ? components.refer('responses', componentName(sameStatus ?? []), answer) : answer;
  }
  return answers;
}

/** The 401 of everything under a tenant (spec: authentication). */
export function unauthorizedAnswer(components: Components): unknown {
  const fault = (faultstring: string, errorcode: string) => ({
    value: { fault: { faultstring, detail: { errorcode } } },
  });
  return components.refer('responses', 'Unauthorized', {
    description: 'The access token is missing, not valid or expired.',
    headers: components.headers(['X-Request-Id', 'WWW-Authenticate']),
    content: {
      'application/json': {
        schema: components.schema(UnauthorizedFault),
        examples: {
          invalid: fault('Invalid access token', 'oauth.v2.InvalidAccessToken'),
          expired: fault('Access Token expired', 'keymanagement.service.access_token_expired'),
        },
      },
    },
  });
}

function errorAnswer(components: Components, types: readonly ErrorType[], message: string | undefined): unknown {
  const retry = types.some((type) => type === 'rate_limit_exceeded' || type === 'service_unavailable');
  return {
    description: types.map((type) => errors[type].when).join(' '),
    headers: components.headers(retry ? ['X-Request-Id', 'Retry-After'] : ['X-Request-Id']),
    content: {
      'application/json': {
        schema: components.schema(ErrorMessage),
        examples: Object.fromEntries(types.map((type) => [type, { value: exampleOf(type, message) }])),
      },
    },
  };
}

function exampleOf(type: ErrorType, own: string | undefined): object {
  const { message, field } = errors[type];
  const details = field === undefined ? {} : { details: [{ field, message: 'is required' }] };
  return { status: statusOfErrorType[type], type, message: own ?? message, ...details };
}

/** `QuotaExceeded` for `quota_exceeded`; types that share a status are joined. */
function componentName(types: readonly ErrorType[]): string {
  const names = types.map((type) => type.replace(/(?:^|_)([a-z])/g, (_match, letter: string) => letter.toUpperCase()));
  return names.join('Or');
}
