/** What a language model has to know of `q`: for the tools of the MCP server and of agents. */
export const queryForModels =
  'Terms field:value with a blank between them; all have to hold. "" is everything. entity:product; entityId:p-17 (only ' +
  'with entity); type:update (create, update or delete); actor:Jane Doe (the name as recorded); actorId:u-17 (the person, whatever the name); ' +
  'onBehalfOf:Acme Ltd (the name) and onBehalfOfId; correlationId:… (changes of one request or transaction); ' +
  'context.ip:… (with the right to read contexts); path:price (also below it: price.amount); ' +
  'change:elemMatch(path:status before:OPEN after:PAID), with is:lower or is:higher for numbers; related.entity and ' +
  'related.entityId; occurredAt:(>="2026-09-01T00:00:00Z" AND <"2026-09-08T00:00:00Z"). A list: type:(create, delete). ' +
  'Either of two: compoundLogicalQuery:((type:delete) OR (entity:order path:price)). ' +
  '* is any text: actor:J*. Double quotes keep signs: actor:"a: b". ' +
  'Without a lower bound of occurredAt only the last 30 days are searched.';

/** Maximum bytes of a result, including the words before the JSON text. */
export const maxResultBytes = 48 * 1024;

/** Changes that one call returns. A narrower query serves a model better than more of them. */
export const maxChanges = 50;
export const defaultChanges = 10;
