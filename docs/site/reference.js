/* global SwaggerUIBundle */
const reference = document.getElementById('reference');

SwaggerUIBundle({
  domNode: reference,
  url: reference.dataset.document,
  presets: [SwaggerUIBundle.presets.apis],
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayOperationId: true,
  validatorUrl: null,
});
