import type { components } from './openapi.ts';

type Schemas = components['schemas'];

/** Something that the list of accesses tells of. */
export type Access = Schemas['AccessItem'];
/** A session of the console. */
export type ConsoleSession = Schemas['ConsoleSessionItem'];
/** What a person allowed a program. */
export type Grant = Schemas['GrantItem'];
/** Who made changes, with all names beside the id. */
export type Actor = Schemas['Actor'];
export type Agent = Schemas['Agent'];
/** What makes or replaces an agent. */
export type AgentInput = Schemas['AgentInput'];
/** An erasure: when, why and how much. */
export type Erasure = Schemas['ErasureItem'];
export type HistoryLog = Schemas['HistoryLog'];
/** The members of an agent that `fields` names. */
export type AgentItem = Schemas['AgentItem'];
/** One change of a document. A client that was made with `--actors none` gets it without `actor`. */
export type ChangeEntry = Schemas['ChangeEntry'] & { actor: string };
/** The values that most changes have. */
export type ChangeFacets = Schemas['ChangeFacets'];
/** What records changes. */
export type ChangeRecorders = Schemas['ChangeRecorders'];
/** How many changes occurred when. */
export type ChangeHistogram = Schemas['ChangeHistogram'];
/** Names of entities or actors. */
export type ChangeNames = Schemas['ChangeNames'];
export type ChangedConfiguration = Schemas['ChangedConfiguration'];
/** Rights that are removed from a client. */
export type ClientNarrowing = Schemas['ClientNarrowing'];
/** The members of a client that `fields` names. */
export type ClientItem = Schemas['ClientItem'];
/** A client with its secret, which is shown once. */
export type ClientWithSecret = Schemas['ClientWithSecret'];
/** What an agent answered. */
export type ChatAnswer = Schemas['ChatAnswer'];
export type Completion = Schemas['Completion'];
export type CompletionRequest = Schemas['CompletionRequest'];
export type CompletionUsage = Schemas['CompletionUsage'];
/** A setting of the tenant. */
export type Configuration = Schemas['Configuration'];
/** A type of custom entities. */
export type CustomEntityType = Schemas['CustomEntityType'];
/** A custom entity, with any further members that its client wrote. */
export type CustomInstance = Schemas['CustomInstance'];
/** The members of a custom entity that `fields` names. */
export type CustomInstanceItem = Schemas['CustomInstanceItem'];
/** A document as it was. */
export type DocumentAtMoment = Schemas['DocumentAtMoment'];
/** Documents by id or name. */
export type DocumentNames = Schemas['DocumentNames'];
/** A change with its position and cursor. */
export type FeedChange = Schemas['FeedChange'];
export type Job = Schemas['Job'];
/** The members of a job that `fields` names. */
export type JobItem = Schemas['JobItem'];
/** A key, without its secret. */
export type Key = Schemas['Key'];
/** The members of a key that `fields` names. */
export type KeyItem = Schemas['KeyItem'];
/** Rights that are removed from a key. */
export type KeyNarrowing = Schemas['KeyNarrowing'];
/** A key with its text, which is shown once. */
export type KeyWithSecret = Schemas['KeyWithSecret'];
/** What a server of tools offers, compared with what an agent has approved. */
export type McpTools = Schemas['McpTools'];
/** What makes a client. */
export type NewClient = Schemas['NewClient'];
export type NewConfiguration = Schemas['NewConfiguration'];
/** What makes a key. */
export type NewKey = Schemas['NewKey'];
/** An OAuth client, without its secret. */
export type OAuthClient = Schemas['Client'];
/** What makes a viewer token. */
export type NewViewerToken = Schemas['NewViewerToken'];
/** A change as viewers see it. */
export type ViewerChange = Schemas['ViewerChange'];
/** A viewer token, and how many seconds it is good for. */
export type ViewerToken = Schemas['ViewerToken'];
/** What starts an export. */
export type NewExport = Schemas['NewExport'];
/** A call of a model, without any text. */
export type ModelCall = Schemas['ModelCallItem'];
/** What calls of models cost: sums of a day, a model or another thing that tells calls apart. */
export type CostsOf = Schemas['CostsOf'];
/** What calls of models may use and cost in a period. */
export type Budget = Schemas['Budget'];
/** What makes or replaces a budget. */
export type BudgetInput = Schemas['BudgetInput'];
/** A budget of a list, with the fields that were asked for. */
export type BudgetItem = Schemas['BudgetItem'];
/** The models of one provider. */
export type ProviderModels = Schemas['ProviderModels'];
/** A change as the recorder takes it. */
export type RecordedChange = Schemas['RecordedChange'];
/** What became of the changes of a request. */
export type RecordedCounts = Schemas['RecordedCounts'];
export type RelatedItem = Schemas['RelatedItem'];
export type RequestLog = Schemas['RequestLog'];
/** The members of a request log that `fields` names. */
export type RequestLogItem = Schemas['RequestLogItem'];
/** A query of the change history with a name. */
export type SavedView = Schemas['SavedView'];
/** What makes or replaces a saved view. */
export type SavedViewInput = Schemas['SavedViewInput'];
/** The members of a saved view that `fields` names. */
export type SavedViewItem = Schemas['SavedViewItem'];
export type SessionLog = Schemas['SessionLog'];
/** The members of a session log that `fields` names. */
export type SessionLogItem = Schemas['SessionLogItem'];
/** What the tenant has used on a day. */
export type UsageOfDay = Schemas['UsageOfDay'];
/** What goes out of the change history, where to, and how far it is. */
export type Subscription = Schemas['Subscription'];
/** What makes or replaces a subscription. */
export type SubscriptionInput = Schemas['SubscriptionInput'];
/** The members of a subscription that `fields` names. */
export type SubscriptionItem = Schemas['SubscriptionItem'];
/** The id of a new subscription, and its secret or public key, which are shown once. */
export type SubscriptionCreated = Schemas['SubscriptionCreated'];
export type SubscriptionPreview = Schemas['SubscriptionPreview'];
/** A new key for signatures, which is shown once. */
export type RotatedKey = Schemas['RotatedKey'];
export type SentRequest = Schemas['SentRequest'];
/** An attempt to deliver. */
export type DeliveryAttempt = Schemas['DeliveryAttemptItem'];
/** How a target took a sample. */
export type DeliveryTest = Schemas['DeliveryTest'];
/** What is sent once more. */
export type ReplayInput = Schemas['ReplayInput'];
