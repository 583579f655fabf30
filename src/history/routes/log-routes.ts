import { Type } from 'typebox';
import { AnnalsError, invalidField } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import { TenantName } from '../../http/chosen-id.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { type Answer, json } from '../../http/openapi/answers.ts';
import { queryInteger } from '../../http/query-parameters.ts';
import { mayReadHistory } from '../../http/scopes.ts';
import type { Database } from '../../postgres/database.ts';
import { cosignersOf } from '../../proof/log/checkpoint.ts';
import { readNewestReceipts } from '../../proof/log/entry-store.ts';
import { signedLog } from '../../proof/log/log-store.ts';
import { parseNote } from '../../proof/log/note.ts';
import { readPublishedEntries, readPublishedTile } from '../../proof/log/published-tiles.ts';
import { parseTilePath } from '../../proof/log/tiles.ts';
import { lastPosition } from '../../recording/positions.ts';
import { openRef } from '../entries/entry-ref.ts';
import { mayShowContext, refuseContextWithoutScope } from './operation.ts';
import { readProof } from './read-proof.ts';
import { HistoryPath, withContext } from './schemas.ts';

const proofOperation = { scopes: ['changelog.proof_read'], errors: ['resource_not_found'] } as const;
const tags = ['Proof'];

const TilePath = Type.Object({
  tenant: TenantName,
  level: Type.String({
    description:
      'The level of the tile, 0 to 63: level 0 has the hashes of leaves. Or `entries`: the leaves themselves.',
    examples: ['0'],
  }),
  '*': Type.String({
    description:
      'The index of the tile as `tlog-tiles` writes it, with slashes: `000`, `x001/x234/067`; with `.p/` and the width for a partial one: `000.p/17`.',
    examples: ['000'],
  }),
});

/** The year 9999: a time of a signature may be any number. */
const maxSeconds = 253_402_300_799;

/** Receipts that the state of a log has. */
const maxReceipts = 50;

const LogState = Type.Object(
  {
    origin: Type.String({
      description: 'The name of the log.',
      examples: ['annals.example.com/log/4b1f0f5a2c3d4e5f60718293a4b5c6d7'],
    }),
    vkey: Type.String({ description: 'The verifier key, as `annals proof vkey` prints it.' }),
    size: Type.Integer({ description: 'The positions that the newest checkpoint signs.', examples: [4945] }),
    unsealed: Type.Integer({ description: 'The positions that no checkpoint signs yet.', examples: [0] }),
    signedAt: Type.String({ format: 'date-time', description: 'When the newest checkpoint was published.' }),
    checkpoint: Type.String({ description: 'The newest checkpoint: a signed note (C2SP tlog-checkpoint).' }),
    witnesses: Type.Array(
      Type.Object(
        {
          name: Type.String({ description: 'The name of the key.' }),
          signedAt: Type.String({ format: 'date-time', description: 'When it signed, as it says.' }),
        },
        { $id: 'HistoryLogWitness' },
      ),
      { description: 'Who cosigned it. Annals verified these signatures when they came; verify them with a policy.' },
    ),
    receipts: Type.Array(
      Type.Object(
        {
          position: Type.Integer({ description: 'Of the receipt itself.' }),
          what: Type.String({ examples: ['erasure'] }),
          at: Type.String({ format: 'date-time' }),
          by: Type.String({ description: '`operator` or `annals`.' }),
          reason: Type.Optional(Type.String()),
          changes: Type.Integer({ description: 'How many positions are concerned.' }),
        },
        { $id: 'HistoryLogReceipt' },
      ),
      {
        description: `Operations on the history other than recording: the newest ${maxReceipts}, newest first. \`annals receipt list\` prints all.`,
      },
    ),
    lastCheck: Type.Optional(
      Type.Object(
        {
          at: Type.String({ format: 'date-time' }),
          right: Type.Boolean({ description: 'Whether the history was what was sealed.' }),
        },
        { $id: 'HistoryLogCheck', description: 'The result of `annals proof check`. Absent: it was never checked.' },
      ),
    ),
  },
  { $id: 'HistoryLog' },
);

const ProofQuery = Type.Object({
  position: Type.Optional(
    queryInteger({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      message: 'position must be >= 1',
      description: 'The position of a change or of a receipt. Either this or `ref`.',
    }),
  ),
  ref: Type.Optional(Type.String({ description: 'The `ref` of a change, where its position is not known.' })),
  context: withContext,
});

/** The log of a tenant (proof 2): what C2SP's tlog-tiles asks of one. */
export async function logRoutes(
  app: HttpServer,
  { db, sealer, now }: { db: Database; sealer: Sealer; now: () => number },
): Promise<void> {
  app.get(
    '/changelog/:tenant/log',
    {
      config: proofOperation,
      schema: {
        operationId: 'getLog',
        tags,
        summary: 'How far the history is sealed',
        description:
          'The log of the history: its verifier key, its newest checkpoint, who says to have cosigned it, and what the last check found.',
        params: HistoryPath,
        response: { 200: json(LogState, { description: 'The state of the log.' }) },
      },
    },
    async (request) => {
      const { tenant } = request.params;
      const { origin, vkey, size, checkpoint, signedAt, checkedAt, checkRight } = await signedLog(db, tenant);
      const { position } = await lastPosition(db, tenant);
      const note = parseNote(checkpoint);
      return {
        origin,
        vkey,
        size,
        unsealed: Math.max(0, position - size),
        signedAt: (signedAt ?? new Date(0)).toISOString(),
        checkpoint,
        receipts: await readNewestReceipts(db, tenant, maxReceipts),
        witnesses: (note === undefined ? [] : cosignersOf(note)).map(({ name, seconds }) => ({
          name,
          signedAt: new Date(Math.min(seconds, maxSeconds) * 1000).toISOString(),
        })),
        ...(checkedAt !== null && { lastCheck: { at: checkedAt.toISOString(), right: checkRight === true } }),
      };
    },
  );

  app.get(
    '/changelog/:tenant/log/checkpoint',
    {
      config: proofOperation,
      schema: {
        operationId: 'getCheckpoint',
        tags,
        summary: 'The newest checkpoint of the history',
        description:
          'A signed note: the name of the log, the number of its leaves, the root of their tree. Keep one, and its verifier key, to find out later whether a change was altered.',
        params: HistoryPath,
        response: { 200: checkpointAnswer },
      },
    },
    async (request, reply) => {
      const { checkpoint } = await signedLog(db, request.params.tenant);
      return await reply.type(textType).header('cache-control', 'private, no-cache').send(checkpoint);
    },
  );

  app.get(
    '/changelog/:tenant/log/tile/:level/*',
    {
      config: { ...proofOperation, neverCompressed: 'hashes get no shorter' },
      schema: {
        operationId: 'getTile',
        tags,
        summary: 'A tile of the tree, or the leaves of one',
        description:
          'Hashes of the Merkle tree, 32 bytes each, or with `entries` the leaves, each after its length in two bytes. A tile that the newest checkpoint does not have is not there.',
        params: TilePath,
        response: { 200: tileAnswer },
      },
    },
    async (request, reply) => {
      const { tenant, level, '*': path } = request.params;
      const { size } = await signedLog(db, tenant);
      const tile = parseTilePath(path);
      const isEntries = level === 'entries';
      if (tile === undefined || !(isEntries || /^(?:[0-9]|[1-5][0-9]|6[0-3])$/.test(level))) throw noSuchTile();
      const bytes = isEntries
        ? await readPublishedEntries(db, tenant, size, tile)
        : await readPublishedTile(db, tenant, size, { level: Number(level), ...tile });
      if (bytes === undefined) throw noSuchTile();
      return await reply
        .type('application/octet-stream')
        .header('cache-control', 'private, max-age=31536000, immutable')
        .send(bytes);
    },
  );

  app.get(
    '/changelog/:tenant/log/proof',
    {
      onRequest: refuseContextWithoutScope,
      config: proofOperation,
      schema: {
        operationId: 'getProof',
        tags,
        summary: 'The proof of a change',
        description:
          'Proves offline that the newest checkpoint has the change, or the receipt, of a position. The change itself is in it for those who may read the history; its identity never is.',
        params: HistoryPath,
        querystring: ProofQuery,
        response: { 200: proofAnswer },
      },
    },
    async (request, reply) => {
      const { position, ref, context } = request.query;
      const { credentials, params } = request;
      if ((position === undefined) === (ref === undefined))
        throw invalidField('position', 'a proof is of one position or of one ref');
      const shows = mayShowContext(context, credentials)
        ? 'context'
        : mayReadHistory(credentials.scopes)
          ? 'change'
          : 'nothing';
      const of = position ?? openRef(sealer, params.tenant, ref ?? '');
      const proof = await readProof(db, params.tenant, { of, shows, now: now() });
      return await reply.type(textType).header('cache-control', 'private, no-cache').send(proof);
    },
  );
}

function noSuchTile(): AnnalsError {
  return new AnnalsError('resource_not_found', 'The newest checkpoint of this history has no such tile.');
}

const textType = 'text/plain; charset=utf-8';

const checkpointAnswer: Answer<string> = {
  description: 'The checkpoint.',
  headers: [],
  content: {
    'text/plain': {
      schema: Type.Unsafe<string>(Type.String({ description: 'C2SP tlog-checkpoint.' })),
      examples: [
        'annals.example.com/log/4b1f0f5a2c3d4e5f60718293a4b5c6d7\n4946\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n— annals.example.com/log/4b1f0f5a2c3d4e5f60718293a4b5c6d7 Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n',
      ],
    },
  },
};

const proofAnswer: Answer<string> = {
  description: 'The proof.',
  headers: [],
  content: {
    'text/plain': { schema: Type.Unsafe<string>(Type.String({ description: 'C2SP tlog-proof.' })) },
  },
};

const tileAnswer: Answer<Buffer> = {
  description: 'The tile.',
  headers: [],
  content: {
    'application/octet-stream': {
      schema: Type.Unsafe<Buffer>(Type.String({ format: 'binary', description: 'C2SP tlog-tiles.' })),
    },
  },
};
