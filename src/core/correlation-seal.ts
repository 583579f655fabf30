import type { Sealer } from './sealing.ts';

/**
 * How a restricted reader sees correlation ids: as texts that are equal where the ids are, to this reader alone, and
 * tell nothing of them but their length.
 */
export interface CorrelationSeal {
  seal(correlationId: string): string;
  /** The correlation id of a text that this reader got; undefined for any other text. */
  open(text: string): string | undefined;
}

export interface CorrelationReader {
  readonly tenant: string;
  /** The id of the credential, or of the client that issued the viewer token. */
  readonly maker: string;
  /** Of a viewer token; otherwise empty. */
  readonly subject: string;
}

/** The sealed texts of a reader. The current key seals; texts that an older key sealed still open. */
export function correlationSeal(sealer: Sealer, { tenant, maker, subject }: CorrelationReader): CorrelationSeal {
  const purpose = JSON.stringify(['correlation id, format 1', tenant, maker, subject]);
  return {
    seal: (correlationId) => Buffer.from(sealer.sealAlike(Buffer.from(correlationId), purpose)).toString('base64url'),

    open(text) {
      const sealed = Buffer.from(text, 'base64url');
      // There is one canonical form: no padding, no other alphabet, no unused bits in the last character.
      const opened = sealed.toString('base64url') === text ? sealer.open(sealed, purpose) : undefined;
      return opened && Buffer.from(opened).toString();
    },
  };
}
