import { AnnalsError } from '../../core/errors.ts';
import { faultOfDocumentId, notFound } from '../../recording/documents/own-documents.ts';

/** Ids of types: capital letters, digits and `_`; the first character is a letter (contract 9). */
export const typeIdPattern = /^[A-Z][A-Z0-9_]{0,62}$/;

/**
 * The id that no instance can get (contract 9). Clients of the API family send operations on many instances to
 * `…/instances/bulk`. Those must not reach one instance.
 */
export const reservedInstanceId = 'bulk';

/** Why an instance's id is wrong, or undefined. */
export function faultOfInstanceId(id: string): string | undefined {
  if (id === reservedInstanceId) return `must not be ${reservedInstanceId}, which is reserved`;
  return faultOfDocumentId(id);
}

export const typeNoun = 'custom entity type';
export const instanceNoun = 'instance';

export function typeNotFound(): AnnalsError {
  return notFound(typeNoun);
}

export function instanceNotFound(): AnnalsError {
  return notFound(instanceNoun);
}

export function idDiffers(): AnnalsError {
  return new AnnalsError('validation_violation', 'The id in the body is not that of the path.', {
    details: [{ field: 'id', message: 'must be that of the path' }],
  });
}

/** SQLSTATE of a statement that violates a foreign key: the other row is gone, or still in use. */
export const foreignKeyViolation = '23503';
