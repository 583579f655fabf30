import { AnnalsError } from '../../core/errors.ts';
import { faultOfDocumentId, notFound } from '../../recording/documents/own-documents.ts';

/** Ids of types: capital letters, digits and `_`, starting with a letter (contract 9). */
export const typeIdPattern = /^[A-Z][A-Z0-9_]{0,62}$/;

/**
 * The reserved id (contract 9): clients of the API family send bulk operations to `…/instances/bulk`, which must not
 * reach one instance.
 */
export const reservedInstanceId = 'bulk';

/** The fault of an instance's id, if any. */
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

/** SQLSTATE of a foreign key violation: the other row is gone or still in use. */
export const foreignKeyViolation = '23503';
