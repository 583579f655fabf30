import { Type } from 'typebox';
import { TargetHeaders } from '../targets/headers.ts';
import { targetUrl } from '../targets/url.ts';

export const defaultConcurrency = 4;
export const maxConcurrency = 8;

export const WebhookTarget = Type.Object(
  {
    type: Type.Literal('webhook'),
    url: targetUrl('(?:[/?][^#]*)?', { description: 'https. Annals calls it with POST, and follows no redirect.' }),
    headers: Type.Optional(TargetHeaders),
    signing: Type.Optional(
      Type.Enum(['hmac', 'ed25519'], {
        type: 'string',
        description:
          'Default: `hmac`, with a secret. `ed25519`: with a private key that Annals keeps. It cannot be changed later.',
      }),
    ),
    concurrency: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: maxConcurrency,
        description: 'Calls at once, of different documents. Default: 4. With 1 all changes come one after another.',
      }),
    ),
    publicKey: Type.Optional(Type.String({ readOnly: true, description: 'Of `ed25519`: `whpk_…`.' })),
  },
  { $id: 'WebhookTarget', additionalProperties: false },
);
