import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;
/** An object that has exactly one of its optional members. */
const oneMember = { additionalProperties: false, minProperties: 1, maxProperties: 1 } as const;

const Name = Type.String({ minLength: 1, maxLength: 1000 });

const Ignore = {
  ignore: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      maxItems: 1000,
      description: 'Paths that are left out: "updated_at", "doc.etag", "lines.*.version". "*" stands for any one key.',
    }),
  ),
};
const Mask = {
  mask: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      maxItems: 1000,
      description: 'Paths whose values are never stored. An entry shows "********" in their place.',
    }),
  ),
};

const maxCorrelation = 200;

/** A column, or one text for all rows. */
function columnOrValue(description: string, maxLength = 1000) {
  const value = Type.String({ minLength: 1, maxLength });
  return Type.Optional(Type.Union([Name, Type.Object({ value }, closed)], { description }));
}

const TransactionActor = Type.Object(
  {
    actor: Type.Optional(Name),
    actorId: Type.Optional(Name),
    onBehalfOf: Type.Optional(
      Type.Object({ name: Type.Optional(Name), id: Type.Optional(Name) }, { ...closed, minProperties: 1 }),
    ),
  },
  { ...closed, minProperties: 1 },
);

const Related = Type.Object(
  {
    entity: Name,
    id: Type.Array(Name, {
      minItems: 1,
      maxItems: 32,
      description: 'Columns. A null is no item; an array is one item for each element.',
    }),
  },
  closed,
);

const Table = Type.Object(
  {
    entity: Type.String({ minLength: 1, maxLength: 1000, description: 'The entity type that the rows are.' }),
    id: Type.Optional(
      Type.Array(Name, {
        minItems: 1,
        maxItems: 32,
        description: 'Columns of the id. Left out: the primary key. Several are joined by commas.',
      }),
    ),
    name: Type.Optional(Type.String({ minLength: 1, description: "Column with the document's name." })),
    actor: Type.Optional(Type.String({ minLength: 1, description: 'Column with who made the change.' })),
    actorId: columnOrValue("Column with the actor's id, or one id for all rows."),
    onBehalfOf: Type.Optional(
      Type.Object(
        {
          name: columnOrValue("Column with the person's name, or one name for all rows."),
          id: columnOrValue("Column with the person's id, or one id for all rows."),
        },
        { ...closed, minProperties: 1, description: 'For whom the actor made the change.' },
      ),
    ),
    correlationId: columnOrValue('Column with the id that changes of one request share.', maxCorrelation),
    transactionActor: Type.Optional(
      Type.Union([Name, TransactionActor], {
        description:
          'Columns by which a new row of this table says who made all changes of its transaction: a table of events, for instance. One column has the name.',
      }),
    ),
    schemaVersion: Type.Optional(
      Type.Object({ value: Type.Optional(Name), column: Type.Optional(Name) }, { ...oneMember }),
    ),
    related: Type.Optional(Type.Array(Related, { maxItems: 100 })),
    ...Ignore,
    ...Mask,
    former: Type.Optional(
      Type.Record(Type.String(), Type.Union([Name, Type.Null()]), {
        description:
          'Columns that the table had: the name of each today, or null where it was dropped. Rules hold for a column under all of its names.',
      }),
    ),
    json: Type.Optional(
      Type.Array(Name, { maxItems: 1000, description: 'Text columns that hold JSON. Their values are read as JSON.' }),
    ),
    context: Type.Optional(
      Type.Record(Type.String(), Name, { description: "Members of the change's context, and the column of each." }),
    ),
    truncate: Type.Optional(
      Type.Enum(['deletes', 'ignore'], {
        description: 'What a TRUNCATE is: a delete of each document, or nothing.',
        default: 'deletes',
      }),
    ),
    snapshot: Type.Optional(Type.Boolean({ description: 'Whether a snapshot reads this table.', default: true })),
  },
  closed,
);

/** The mapping as its file holds it (recording.md 3). */
export const MappingFile = Type.Object(
  {
    $schema: Type.Optional(Type.String({ description: 'For editors. Annals does not read it.' })),
    version: Type.Literal(1),
    tenant: Type.Optional(
      Type.Object(
        {
          value: Type.Optional(Name),
          column: Type.Optional(Name),
          schema: Type.Optional(Type.Literal(true)),
        },
        {
          ...oneMember,
          description: 'Whose changes they are: one tenant, the value of a column, or the schema of the table.',
        },
      ),
    ),
    tenants: Type.Optional(
      Type.Record(Type.String(), Name, { description: 'Tenants by the value of the column or the schema.' }),
    ),
    people: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1000,
        description:
          'The entity type of the people that actor ids identify. A change that gives the id of its actor and no name gets the last name of this document.',
      }),
    ),
    sources: Type.Optional(
      Type.Array(Name, { maxItems: 1000, description: "Debezium's source names. Left out: any." }),
    ),
    tables: Type.Optional(
      Type.Record(Type.String(), Table, {
        description: 'Tables by "schema.table", or "database.name" for MySQL and MongoDB. Others are not recorded.',
      }),
    ),
    entities: Type.Optional(
      Type.Record(Type.String(), Type.Object({ ...Ignore, ...Mask }, closed), {
        description: 'Rules for documents by their entity type, however they come.',
      }),
    ),
  },
  {
    ...closed,
    title: 'Mapping of Annals',
    description: 'Tells Annals which rows and documents are recorded, and what of them.',
  },
);

export type MappingFile = Static<typeof MappingFile>;
export type TableFile = Static<typeof Table>;
