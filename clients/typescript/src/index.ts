export { Annals, type AnnalsOptions } from './annals.ts';
export type {
  ExactChangeEntry,
  ExactConfiguration,
  ExactDocumentAtMoment,
  ExactPathValueChange,
} from './json/exact-answers.ts';
export type { CursorPage, FieldsParameters, ListParameters } from './pages/cursor-page.ts';
export type { HistoryPage, HistoryParameters } from './pages/history-page.ts';
export type { Page, Walk } from './pages/walk.ts';
export type { NewChange, NewEvent } from './recorder/change-line.ts';
export type { Recorder, RecorderCounts, RecorderOptions } from './recorder/recorder.ts';
export type { ActorParameters } from './resources/actors.ts';
export type { AgentPatchOperation } from './resources/agents.ts';
export type { AnswerStream } from './resources/answer-stream.ts';
export type { ChatMessage, ChatStream } from './resources/chat.ts';
export type { CompletionOptions, StreamedCompletion } from './resources/completions.ts';
export type { CustomEntityTypeInput } from './resources/custom-entities.ts';
export type {
  DocumentNameParameters,
  DocumentParameters,
  EntryParameters,
  FacetParameters,
  HistogramParameters,
  NameParameters,
} from './resources/history.ts';
export type { PatchOperation } from './resources/instances.ts';
export type { ExportFile, ExportParameters, WaitOptions } from './resources/jobs.ts';
export type { TailParameters } from './resources/tail.ts';
export type { ViewerTokenParameters } from './resources/viewer-tokens.ts';
export type * from './schemas.ts';
export { ApiError, type ErrorDetail } from './transport/api-error.ts';
export type { CallOptions } from './transport/request.ts';
export {
  type VerifyOptions,
  verifyWebhook,
  type Webhook,
  WebhookError,
  type WebhookFault,
} from './webhooks/verify-webhook.ts';
