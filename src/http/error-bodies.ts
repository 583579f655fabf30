import { Type } from 'typebox';
import { type AnnalsError, type ErrorDetail, type ErrorType, maxDetails, statusOfErrorType } from '../core/errors.ts';

/** Every error but 401 has this body (spec: error message); `details` only where there are any. */
export const ErrorMessage = Type.Object(
  {
    status: Type.Integer({ minimum: 400, maximum: 599, description: 'The HTTP status code.' }),
    type: Type.Enum(Object.keys(statusOfErrorType), { type: 'string', description: 'One of a closed list.' }),
    message: Type.String({ description: 'For people.' }),
    details: Type.Optional(
      Type.Array(Type.Object({ field: Type.String(), message: Type.String() }, { $id: 'ErrorDetail' }), {
        description: 'The fields with faults, at most the first 10.',
      }),
    ),
  },
  {
    $id: 'ErrorMessage',
  },
);

export const UnauthorizedFault = Type.Object(
  {
    fault: Type.Object(
      { faultstring: Type.String(), detail: Type.Object({ errorcode: Type.String() }, { $id: 'FaultDetail' }) },
      { $id: 'Fault' },
    ),
  },
  {
    $id: 'UnauthorizedFault',
  },
);

export interface ErrorMessageBody {
  status: number;
  type: ErrorType;
  message: string;
  details?: readonly ErrorDetail[];
}

export function errorMessageBody(error: AnnalsError): ErrorMessageBody {
  const body: ErrorMessageBody = { status: error.status, type: error.type, message: error.message };
  if (error.details.length > 0) body.details = error.details.slice(0, maxDetails);
  return body;
}
