// SPDX-License-Identifier: Apache-2.0
// Starts Swagger UI on /docs: a file of its own, because the Content-Security-Policy allows no script inside the page.
window.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null, // else it would show the contract to somebody else's server
  // Who is signed in may try what changes things, too.
  requestInterceptor: (request) => ({ ...request, headers: { ...request.headers, "X-BWB-CSRF": "1" } }),
});
